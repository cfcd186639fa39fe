//go:build unix

package endpoint_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/credence-id/credence/internal/endpoint"
)

// restricted checks that processes of other users than the owner and root can't connect.
func restricted(t *testing.T, e endpoint.Endpoint) {
	t.Helper()
	if info, err := os.Lstat(e.String()); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v, want a socket with mode 0600", info, err)
	}
}
