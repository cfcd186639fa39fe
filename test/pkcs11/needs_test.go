package pkcs11

import (
	"os"
	"testing"
)

// skip skips a test that needs what is not here. What can be installed is not skipped where CI says that it is at work.
func skip(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("nothing that can be installed is skipped in CI: %s", what)
	}
	t.Skip(what)
}
