package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// hidden begins the names of what is not a file of the volume.
	hidden = ".."
	// current is a link to the folder with the files of now; that of each file leads through it.
	current = hidden + "data"
	// The modes of files: those of a group are for its members, as a container of any user is one; others are for all users.
	modeOfGroup, modeOfAll = 0o440, 0o644
)

// Write makes the files of a volume, by their names, those given, and no others. A reader sees all of them as before or all as after;
// so does a reader after this process was killed. If it fails, they are as before.
func Write(memory Memory, path string, files map[string][]byte, group *int64) error {
	mounted, err := memory.Mounted(path)
	if err == nil && !mounted {
		err = errors.New("nothing is mounted there")
	}
	if err != nil {
		return fmt.Errorf("write into %s: %w", path, err)
	}
	if err := write(path, files, group); err != nil {
		return fmt.Errorf("write into %s: %w", path, err)
	}
	return nil
}

func write(path string, files map[string][]byte, group *int64) error {
	if err := sweep(path); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(path, hidden+"files-")
	if err != nil {
		return err
	}
	if err := fill(path, fresh, files, group); err != nil {
		return errors.Join(err, sweep(path))
	}
	return errors.Join(links(path, files), sweep(path))
}

// fill writes files into a folder, and makes it the current one.
func fill(path, folder string, files map[string][]byte, group *int64) error {
	for name, content := range files {
		if err := create(filepath.Join(folder, name), content, group); err != nil {
			return err
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	return replaceLink(path, filepath.Base(folder), current)
}

func create(path string, content []byte, group *int64) error {
	if group == nil {
		return writeFile(path, content, modeOfAll)
	}
	if err := writeFile(path, content, modeOfGroup); err != nil {
		return err
	}
	return os.Chown(path, -1, int(*group))
}

// writeFile writes a file of exactly this mode, whatever the process's mask is.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func replaceLink(path, target, name string) error {
	fresh := filepath.Join(path, hidden+"link")
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(path, name))
}

// links makes a link for each file, and removes those of files that are gone.
func links(path string, files map[string][]byte) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; wanted || strings.HasPrefix(entry.Name(), hidden) {
			continue
		}
		if err := os.Remove(filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		target := filepath.Join(current, name)
		if is, err := os.Readlink(filepath.Join(path, name)); err == nil && is == target {
			continue
		}
		if err := replaceLink(path, target, name); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what is hidden and not current: of files from before, and of a process that was killed.
func sweep(path string) error {
	used, err := os.Readlink(filepath.Join(path, current))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, hidden) || name == current || name == used {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// Read returns a file of a volume.
func Read(path, name string) ([]byte, error) { return os.ReadFile(filepath.Join(path, name)) }
