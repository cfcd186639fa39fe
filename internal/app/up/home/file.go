//go:build unix

package home

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces a file as a whole: after a crash it has the old contents or the new ones. Its folder is made (0700).
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := replace(folder, path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Keep writes a file only where its contents differ, so that those who watch it are not woken for nothing.
func Keep(path string, data []byte, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm() == mode {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	return WriteFile(path, data, mode)
}

func replace(folder, path string, data []byte, mode fs.FileMode) error {
	temporary, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return cause(err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	if err := fill(temporary, data, mode); err != nil {
		return cause(err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

func fill(file *os.File, data []byte, mode fs.FileMode) error {
	_, err := file.Write(data)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

func syncFolder(folder string) error {
	opened, err := os.Open(folder)
	if err != nil {
		return cause(err)
	}
	err = opened.Sync()
	if closeErr := opened.Close(); err == nil {
		err = closeErr
	}
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
