//go:build unix

package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/credence-id/credence/internal/filelock"
)

// maxSocketPath is what the shortest sockaddr_un of the systems we run on holds, in bytes.
const maxSocketPath = 103

// Listen listens on a unix socket of mode 0600 in a folder of mode 0700 of this user, which is made if it does not exist:
// a process that reaches the socket can have any token signed. The socket of a process that died is replaced; one on which a
// process listens is refused.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if !filepath.IsAbs(path) || len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path of a unix socket must be absolute, and have at most %d bytes", path, maxSocketPath)
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lock, err := filelock.Take(path + ".lock")
	if errors.Is(err, filelock.ErrHeld) {
		err = errListening
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	listener, err := replaceSocket(ctx, path)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &locked{Listener: listener, lock: lock}, nil
}

// locked is a listener that holds the lock of its socket until it has removed it.
type locked struct {
	net.Listener
	lock *os.File
	once sync.Once
}

// Close implements net.Listener.
func (l *locked) Close() error {
	err := l.Listener.Close()
	l.once.Do(func() { _ = l.lock.Close() })
	return err
}

// ownFolder makes a folder, or refuses one that is not of this user alone.
func ownFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: give the path of the folder itself", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("folder %s has mode %#o, so others could have tokens signed: run chmod 700 %s, or give the socket a folder of its own", path, info.Mode().Perm(), path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("folder %s does not belong to uid %d, which this process runs as", path, os.Geteuid())
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
		if err == nil {
			_ = connection.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, errListening
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

var errListening = errors.New("another process listens there: stop it, or give another path")
