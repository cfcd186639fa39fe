package endpoint_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/endpoint"
)

// socket is in a folder with a short path, as that of sockets is.
func socket(t *testing.T) endpoint.Endpoint {
	t.Helper()
	folder, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return endpoint.Socket(filepath.Join(folder, "s"))
}

func TestSocket(t *testing.T) { conforms(t, socket) }

func TestSocketOfTheDead(t *testing.T) {
	e := socket(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: e.String(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, e)
	exchange(t, e)
	restricted(t, e)
}

func TestSocketInPlaceOfAFile(t *testing.T) {
	e := socket(t)
	if err := os.WriteFile(e.String(), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), e.String()+": something is there that is not a socket") {
		t.Errorf("listen: %v", err)
	}
	if content, err := os.ReadFile(e.String()); string(content) != "kept" {
		t.Errorf("the file: %q, %v", content, err)
	}
}
