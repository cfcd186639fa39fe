//go:build unix

package cache

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock of an open file, or returns errBusy. Every opening of a file is a holder of its own, in one process
// too.
func lockFile(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errBusy
		default:
			return err
		}
	}
}
