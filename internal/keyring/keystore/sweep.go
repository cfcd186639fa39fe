package keystore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/identity"
)

// removeKeysBut removes the key files of keys that are not in kept. Files of other names stay.
func (d *Directory) removeKeysBut(kept map[identity.KeyID][]byte) error {
	return d.remove(func(name string) bool {
		id, isKey := keyOf(name)
		_, isKept := kept[id]
		return isKey && !isKept
	})
}

// remove removes files by their names. It is called under the exclusive lock.
func (d *Directory) remove(selected func(name string) bool) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("list %s: %w", d.path, err)
	}
	var errs []error
	for _, entry := range entries {
		if selected(entry.Name()) {
			errs = append(errs, os.Remove(filepath.Join(d.path, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove unused files in %s: %w", d.path, err)
	}
	return nil
}
