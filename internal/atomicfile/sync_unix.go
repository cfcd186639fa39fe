//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const hasModes = true

// SyncFolder makes the names of new, renamed and removed files of a folder last, as far as its file system can.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err == nil {
		if err = folder.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
			err = nil
		}
		if closed := folder.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, cause(err))
	}
	return nil
}
