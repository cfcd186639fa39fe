package credential_test

import (
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/test/testkit"
)

// The delay that a client sees when a credential is cached, without the start of the process: read, decide, mark, encode.
func BenchmarkKept(b *testing.B) {
	provider := credential.Provider{Folder: b.TempDir() + "/cache", Now: time.Now, Caller: credential.Parent(), Terminal: &screen{}}
	source := &authority{lifetime: time.Hour, now: time.Now}
	testkit.Must(b, testkit.Err(provider.Serve(b.Context(), source, credential.ExecInfo{APIVersion: credential.V1, Interactive: true})))
	b.ReportAllocs()
	for b.Loop() {
		info := testkit.Need(credential.ParseExecInfo("", false, false))(b)
		c, ok := provider.Kept(source.Key(), info)
		if !ok {
			b.Fatal("nothing is kept")
		}
		testkit.Must(b, testkit.Err(c.Encode(info.APIVersion)))
	}
}
