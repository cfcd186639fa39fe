package externalsignertest

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/credence-id/credence/test/testkit"
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
	dir := testkit.Need(os.MkdirTemp("", "signer"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// ServeAt serves a signer on a socket until the test ends or stop is called.
func ServeAt(t testing.TB, socket string, signer externaljwt.ExternalJWTSignerServer) (stop func()) {
	t.Helper()
	listener := testkit.Need((&net.ListenConfig{}).Listen(t.Context(), "unix", socket))(t)
	server := grpc.NewServer()
	externaljwt.RegisterExternalJWTSignerServer(server, signer)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		testkit.Expect(t, <-done, "serve signer")
	})
	return server.Stop
}
