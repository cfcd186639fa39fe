package endpoint_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/test/testkit"
)

// socket is in a folder with a short path, as that of sockets is.
func socket(t *testing.T) endpoint.Endpoint {
	t.Helper()
	folder := testkit.Need(os.MkdirTemp("", "s"))(t)
	t.Cleanup(func() {
		testkit.Expect(t, os.RemoveAll(folder))
	})
	return endpoint.Socket(filepath.Join(folder, "s"))
}

func TestSocket(t *testing.T) { conforms(t, socket) }

func TestSocketOfTheDead(t *testing.T) {
	e := socket(t)
	dead := testkit.Need(net.ListenUnix("unix", &net.UnixAddr{Name: e.String(), Net: "unix"}))(t)
	dead.SetUnlinkOnClose(false)
	testkit.Must(t, dead.Close())
	serve(t, e)
	exchange(t, e)
	restricted(t, e)
}

func TestSocketInPlaceOfAFile(t *testing.T) {
	e := socket(t)
	testkit.Must(t, os.WriteFile(e.String(), []byte("kept"), 0o600))
	if _, err := e.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), e.String()+": something is there that is not a socket") {
		t.Errorf("listen: %v", err)
	}
	if content, err := os.ReadFile(e.String()); string(content) != "kept" {
		t.Errorf("the file: %q, %v", content, err)
	}
}
