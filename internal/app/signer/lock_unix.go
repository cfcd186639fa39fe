//go:build unix

package signer

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is not one that the key store knows or removes.
const lockName = ".signer.lock"

// lock keeps a second signer from the same keys: one of them would announce a key that the other has removed. The kernel
// lets go of it when the process ends; the file stays, as removing it would let two processes lock two files of one name.
func lock(dir string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
