//go:build unix

package file_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/credence-id/credence/internal/credential/file"
	"github.com/credence-id/credence/test/testkit"
)

// A pipe without a writer would be waited for without end.
func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	testkit.Must(t, syscall.Mkfifo(path, 0o600))
	if _, err := file.Read(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("read a pipe: %v", err)
	}
}
