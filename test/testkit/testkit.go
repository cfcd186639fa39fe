// Package testkit is what tests of many packages need: a condition that comes true, steps that must succeed, certificates, ports. In goes a test, which
// fails where the thing can't be had. It is imported by tests alone.
package testkit

import (
	"net"
	"testing"
)

// Listen listens on a free port of this machine until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// Port is the port of a listener.
func Port(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

// FreePort returns a port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	listener := Listen(t)
	defer listener.Close()
	return Port(listener)
}
