package outage

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// Of the Secrets of one namespace, those that fail go behind those that did not, whatever expires first.
func TestFailingSecretGoesBehind(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	o := New(clocktesting.NewFakePassiveClock(start), func() float64 { return 0.5 }, func(types.NamespacedName, time.Duration) {})
	bad, good := types.NamespacedName{Namespace: "ns", Name: "bad"}, types.NamespacedName{Namespace: "ns", Name: "good"}
	for range 3 {
		o.Unanswered(bad, "ns", start, true)
		if o.Pass(good, "ns", start.Add(time.Hour)) {
			t.Fatal("the good one passes before its turn")
		}
		o.Unanswered(bad, "ns", start, true)
		if next := o.of["ns"].probing; next != good {
			t.Fatalf("the next turn is that of %s", next)
		}
		o.Answered("ns")
	}
}
