//go:build unix

package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// maxPath is what the shortest sockaddr_un of the systems we run on holds, in bytes.
const maxPath = 103

// Listen listens on a unix socket of mode 0600. The socket of a process that died is replaced; one on which a process listens
// is refused. Of two processes that start at once, both may listen: a lock is theirs to take.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	listener, err := replaceSocket(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return listener, nil
}

// ErrListening is returned where another process listens.
var ErrListening = errors.New("another process listens there: stop it, or give another path")

// Check returns an error if a path cannot be that of a socket.
func Check(path string) error {
	if !filepath.IsAbs(path) || len(path) > maxPath {
		return fmt.Errorf("listen on %s: the path of a unix socket must be absolute, and have at most %d bytes", path, maxPath)
	}
	return nil
}

// replaceSocket listens on a path that does not exist, or where no process listens.
func replaceSocket(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("something is there that is not a socket: remove it, or give another path")
	default:
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			_ = connection.Close()
			return nil, ErrListening
		case errors.Is(err, syscall.EAGAIN): // its queue is full
			return nil, ErrListening
		case !errors.Is(err, syscall.ECONNREFUSED):
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	own := func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(descriptor uintptr) { _ = syscall.Fchmod(int(descriptor), 0o600) })
	}
	listener, err := (&net.ListenConfig{Control: own}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// Where a socket does not get its mode before it has a name.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}
