package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// Socket is a unix socket, by its path.
type Socket string

// maxPath is what the shortest sockaddr_un of the systems we run on holds, in bytes.
const maxPath = 103

// String implements Endpoint.
func (s Socket) String() string { return string(s) }

func parseSocket(path string) (Endpoint, error) {
	s := Socket(path)
	if err := s.Check(); err != nil {
		return nil, err
	}
	return Socket(filepath.Clean(path)), nil
}

// Check returns an error if the path cannot be that of a socket.
func (s Socket) Check() error {
	switch {
	case !filepath.IsAbs(string(s)):
		return fmt.Errorf("%q is not an absolute path", string(s))
	case len(s) > maxPath:
		return fmt.Errorf("%s is too long: the path of a unix socket has at most %d bytes", s, maxPath)
	}
	return nil
}

// Dial implements Endpoint.
func (s Socket) Dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", string(s))
}

// Listen listens on a socket for this user alone. The socket of a process that died is replaced; one on which a process listens is
// refused. Of two processes that start at once, both may listen: a lock is theirs to take.
func (s Socket) Listen(ctx context.Context) (net.Listener, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	listener, err := s.replace(ctx)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", s, err)
	}
	return listener, nil
}

// replace listens on a path that does not exist, or where no process listens.
func (s Socket) replace(ctx context.Context) (net.Listener, error) {
	info, err := os.Lstat(string(s))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("something is there that is not a socket: remove it, or give another path")
	default:
		connection, err := s.Dial(ctx)
		switch {
		case err == nil:
			_ = connection.Close()
			return nil, ErrListening
		case errors.Is(err, errQueueFull):
			return nil, ErrListening
		case !errors.Is(err, errNotListening):
			return nil, err
		}
		if err := os.Remove(string(s)); err != nil {
			return nil, err
		}
	}
	listener, err := (&net.ListenConfig{Control: beforeName}).Listen(ctx, "unix", string(s))
	if err != nil {
		return nil, err
	}
	// Where a socket does not get its access rights before it has a name.
	if err := s.restrict(); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}
