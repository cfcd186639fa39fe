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

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/internal/filelock"
)

// Listen listens on a unix socket of mode 0600 in a folder of mode 0700 of this user, which is made if it does not exist:
// a process that reaches the socket can have any token signed. The socket of a process that died is replaced; one on which a
// process listens is refused.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	socket := endpoint.Socket(path)
	if err := socket.Check(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	lock, err := filelock.Take(path + ".lock")
	if errors.Is(err, filelock.ErrHeld) {
		err = endpoint.ErrListening
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	listener, err := socket.Listen(ctx)
	if err != nil {
		_ = lock.Close()
		return nil, err
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
