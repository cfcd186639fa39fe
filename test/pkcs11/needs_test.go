package pkcs11

import (
	"os"
	"testing"
)

// skip skips a test that needs what is not here. With CI set, it fails instead if the program can be installed.
func skip(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("nothing that can be installed is skipped in CI: %s", what)
	}
	t.Skip(what)
}
