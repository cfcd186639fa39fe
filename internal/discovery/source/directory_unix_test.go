//go:build unix

package source

import (
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/test/testkit"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe has no end: opening it would wait for a writer for ever.
func TestDirectoryDoesNotOpenPipes(t *testing.T) {
	folder := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(folder, discovery.JWKSKey), 0o600))
	put(t, filepath.Join(folder, discovery.ConfigurationKey), []byte("{}"))
	published := follow(t, folder)
	testkit.Eventually(t, "it is reported", func() bool { _, _, unreadable := published.counts(); return unreadable == 1 })
}
