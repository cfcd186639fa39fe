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
	"github.com/credence-id/credence/test/testkit"
)

// A process that is at work on a credential, and has been stopped, say, does not keep a logout waiting without end.
func TestLogoutDoesNotWaitWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := testkit.Need(cache.Open(filepath.Join(t.TempDir(), "cache")))(t)
		defer func() { _ = folder.Close() }()
		name := cache.NameOf(map[string]string{"source": "x"})
		lock := testkit.Need(folder.Lock(t.Context(), name, cache.Wait{}))(t)
		defer lock.Release()
		testkit.Must(t, os.WriteFile(filepath.Join(folder.Path(), string(name)), nil, 0o600))
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
