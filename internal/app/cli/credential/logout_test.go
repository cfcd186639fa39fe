package credential_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/credential/cache"
)

// A process that is at work on a credential, and has been stopped, say, does not keep a logout waiting without end.
func TestLogoutDoesNotWaitWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, err := cache.Open(filepath.Join(t.TempDir(), "cache"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = folder.Close() }()
		name := cache.NameOf(map[string]string{"source": "x"})
		lock, err := folder.Lock(t.Context(), name, cache.Wait{})
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		if err := os.WriteFile(filepath.Join(folder.Path(), string(name)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		root := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, cli.Options{})
		if code := cli.Run(t.Context(), root, []string{"logout", "--all", "--cache-folder", folder.Path()}); code != 3 {
			t.Errorf("exit code %d", code)
		}
		for _, text := range []string{"waiting for another process", "is not forgotten", "hint: wait until the other process is done"} {
			if !strings.Contains(errOut.String(), text) {
				t.Errorf("%q is not in the output: %s%s", text, out.String(), errOut.String())
			}
		}
	})
}
