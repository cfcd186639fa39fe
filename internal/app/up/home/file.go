//go:build unix

package home

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/atomicfile"
)

// WriteFile replaces a file as a whole: after a crash it has the old contents or the new ones. Its folder is made (0700).
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return atomicfile.Replace(path, data, mode)
}

// Keep writes a file only where its contents or mode differ, so that programs that follow it are not woken for nothing.
func Keep(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err := atomicfile.Update(path, data, mode)
	return err
}

// WriteJSON is WriteFile of a value as indented JSON.
func WriteJSON(path string, value any, mode fs.FileMode) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'), mode)
}
