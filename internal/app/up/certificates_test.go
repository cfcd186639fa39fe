//go:build unix

package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/test/testkit"
)

// A damaged authority is named, and the same error has what to do.
func TestDamagedAuthority(t *testing.T) {
	i := installation{dir: home.Dir(t.TempDir())}
	testkit.Must(t, os.MkdirAll(filepath.Dir(i.authorityFile()), 0o700))
	for _, file := range []string{i.authorityFile(), i.authorityKeyFile()} {
		testkit.Must(t, os.WriteFile(file, []byte("damaged"), 0o600))
	}
	if _, err := i.authority(time.Now()); err == nil || !strings.Contains(err.Error(), i.authorityFile()) || !strings.Contains(err.Error(), i.authorityKeyFile()) || strings.Contains(err.Error(), "%!") {
		t.Errorf("a damaged authority: %v", err)
	}
}
