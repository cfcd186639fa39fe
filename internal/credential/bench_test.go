package credential_test

import (
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// The delay that a client sees when a credential is cached, without the start of the process: read, decide, mark, encode.
func BenchmarkKept(b *testing.B) {
	provider := credential.Provider{Folder: b.TempDir() + "/cache", Now: time.Now, Caller: credential.Parent(), Terminal: &screen{}}
	source := &authority{lifetime: time.Hour, now: time.Now}
	if _, err := provider.Serve(b.Context(), source, credential.ExecInfo{APIVersion: credential.V1, Interactive: true}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		info, err := credential.ParseExecInfo("", false, false)
		if err != nil {
			b.Fatal(err)
		}
		c, ok := provider.Kept(source.Key(), info)
		if !ok {
			b.Fatal("nothing is kept")
		}
		if _, err := c.Encode(info.APIVersion); err != nil {
			b.Fatal(err)
		}
	}
}
