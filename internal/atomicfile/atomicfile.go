// Package atomicfile replaces files in one step. In goes the new content of a file; after a crash at any point the file has the
// old content or the new one, whole. It never follows what the content is, and keeps nothing of a write that failed.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix is what the names of unfinished files begin with.
const prefix = ".tmp-"

// Unfinished reports whether a name is that of a file that Replace had not finished when its process was killed. Remove such
// files only where no process can be writing.
func Unfinished(name string) bool { return strings.HasPrefix(name, prefix) }

// Replace gives the file of a path its content and mode, and makes both last. Its folder must exist.
func Replace(path string, content []byte, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	temporary, err := os.CreateTemp(folder, prefix+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	if err = fill(temporary, content, mode); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	return SyncFolder(folder)
}

// RemoveUnfinished removes what killed processes left unfinished of the file of a path. Call it only where no process can be writing
// that file.
func RemoveUnfinished(path string) error {
	folder, name := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(folder))
	for _, entry := range entries {
		random, ours := strings.CutPrefix(entry.Name(), prefix+name+"-")
		if !ours || strings.Trim(random, "0123456789") != "" {
			continue
		}
		if removed := os.Remove(filepath.Join(folder, entry.Name())); err == nil && !errors.Is(removed, fs.ErrNotExist) {
			err = removed
		}
	}
	return err
}

// Create is Replace for a file that must not exist: it returns fs.ErrExist if there is one. A crash can leave the new file empty.
func Create(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, cause(err))
	}
	if err := Replace(path, content, mode); err != nil {
		_ = os.Remove(path)
		return err
	}
	return nil
}

// Update is Replace where the file has another content, or another mode on systems that have modes, and reports whether it had.
func Update(path string, content []byte, mode fs.FileMode) (changed bool, err error) {
	if info, err := os.Stat(path); err == nil && (info.Mode().Perm() == mode || !hasModes) {
		if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, content) {
			return false, nil
		}
	}
	return true, Replace(path, content, mode)
}

func fill(file *os.File, content []byte, mode fs.FileMode) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	// Windows renames no open file.
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// cause drops the path of the unfinished file.
func cause(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}
