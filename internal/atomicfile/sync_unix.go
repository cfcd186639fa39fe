//go:build unix

package atomicfile

import (
	"fmt"
	"os"
)

// SyncFolder makes the names of new, renamed and removed files of a folder last.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err == nil {
		err = folder.Sync()
		if closed := folder.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, cause(err))
	}
	return nil
}
