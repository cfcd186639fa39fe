//go:build unix

package signer

import (
	"errors"
	"path/filepath"

	"github.com/credence-id/credence/internal/filelock"
)

// lockName is not one that the key store knows or removes.
const lockName = ".signer.lock"

// lock keeps a second signer from the same keys: one of them would announce a key that the other has removed.
func lock(dir string) (release func(), err error) {
	file, err := filelock.Take(filepath.Join(dir, lockName))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
