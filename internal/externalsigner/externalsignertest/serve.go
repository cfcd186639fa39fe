package externalsignertest

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	externaljwt "k8s.io/externaljwt/apis/v1"
)

// Serve serves a signer on a unix socket until the test ends, and returns its path.
func Serve(t testing.TB, signer externaljwt.ExternalJWTSignerServer) (socket string) {
	t.Helper()
	socket = Socket(t)
	ServeAt(t, socket, signer)
	return socket
}

// Socket returns the path of a unix socket that does not exist; those of t.TempDir may be too long for one.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "signer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// ServeAt serves a signer on a socket until the test ends or stop is called.
func ServeAt(t testing.TB, socket string, signer externaljwt.ExternalJWTSignerServer) (stop func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	externaljwt.RegisterExternalJWTSignerServer(server, signer)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Errorf("serve signer: %v", err)
		}
	})
	return server.Stop
}
