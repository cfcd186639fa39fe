package drift_test

import (
	"testing"

	"github.com/credence-id/credence/internal/drift"
	"github.com/credence-id/credence/test/testkit"
)

func BenchmarkDecide(b *testing.B) {
	for name, change := range map[string]func(*drift.Pod){
		"current": func(*drift.Pod) {},
		"stale":   func(p *drift.Pod) { p.Request.Account.Identities[0].ProviderConfig = role("other") },
	} {
		p := store(b)
		change(&p)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, testkit.Err(drift.Decide(p)))
			}
		})
	}
}
