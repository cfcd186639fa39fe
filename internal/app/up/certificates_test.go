//go:build unix

package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/up/home"
)

// A damaged authority is named, and the same error has what to do.
func TestDamagedAuthority(t *testing.T) {
	i := installation{dir: home.Dir(t.TempDir())}
	if err := os.MkdirAll(filepath.Dir(i.authorityFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{i.authorityFile(), i.authorityKeyFile()} {
		if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := i.authority(time.Now()); err == nil || !strings.Contains(err.Error(), i.authorityFile()) || !strings.Contains(err.Error(), i.authorityKeyFile()) || strings.Contains(err.Error(), "%!") {
		t.Errorf("a damaged authority: %v", err)
	}
}
