//go:build unix

package cache

import "fmt"

// lockCanBeRemoved: a file that is open can be removed.
const lockCanBeRemoved = true

// sync makes the names of new and renamed files last.
func (f *Folder) sync() error {
	dir, err := f.root.Open(".")
	if err == nil {
		err = dir.Sync()
		if closed := dir.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	return nil
}
