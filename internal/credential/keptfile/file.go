package keptfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/filelock"
)

// ErrHeld: another process keeps the same file.
var ErrHeld = errors.New("another process keeps this file")

// ErrNotAFile: there is something at the path that is not a regular file.
var ErrNotAFile = errors.New("it is not a regular file")

// take takes the lock of a path, a hidden file beside it, which stays: as long as it is held no other process keeps the same file. It
// removes what a killed process left unfinished.
func take(path string) (*os.File, error) {
	folder, name := filepath.Split(path)
	beside := filepath.Join(folder, "."+name+".lock")
	for _, one := range []string{path, beside} {
		if info, err := os.Lstat(one); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("keep %s: %w", one, ErrNotAFile)
		}
	}
	lock, err := os.OpenFile(beside, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep %s: its folder must exist, and this user must be able to write there: %w", path, err)
	}
	if err = filelock.TakeOpen(lock); err == nil {
		err = atomicfile.RemoveUnfinished(path)
	} else if errors.Is(err, filelock.ErrHeld) {
		err = ErrHeld
	}
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("keep %s: %w", path, err)
	}
	return lock, nil
}

// content is a token alone, as in a projected volume; or a chain of certificates, the client's own first, and its key after it, all
// in PEM.
func content(c credential.Credential) []byte {
	if len(c.CertificatePEM) == 0 {
		return []byte(c.Token.Reveal())
	}
	return append(append([]byte{}, c.CertificatePEM...), c.KeyPEM.Reveal()...)
}
