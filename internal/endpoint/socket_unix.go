//go:build unix

package endpoint

import (
	"os"
	"syscall"
)

const (
	errNotListening = syscall.ECONNREFUSED
	errQueueFull    = syscall.EAGAIN
)

func beforeName(_, _ string, socket syscall.RawConn) error {
	return socket.Control(func(descriptor uintptr) { _ = syscall.Fchmod(int(descriptor), 0o600) })
}

func (s Socket) restrict() error { return os.Chmod(string(s), 0o600) }
