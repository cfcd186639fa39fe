//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Take opens a file, which is made with mode 0600, and takes its lock, or returns ErrHeld. A symbolic link is refused.
func Take(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := TakeOpen(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// TakeOpen takes the lock of an open file, or returns ErrHeld.
func TakeOpen(file *os.File) error { return flock(file, syscall.LOCK_EX) }

// Free reports whether no process has the lock of an open file, which must be closed after.
func Free(file *os.File) (bool, error) {
	err := flock(file, syscall.LOCK_SH)
	if errors.Is(err, ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		case err != nil:
			return &os.PathError{Op: "lock", Path: file.Name(), Err: err}
		}
		return nil
	}
}
