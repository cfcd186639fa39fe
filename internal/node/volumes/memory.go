package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Memory mounts file systems that are in memory alone.
type Memory interface {
	// Mounted reports whether one is mounted at a path. The error is that of a path at which something else is mounted.
	Mounted(path string) (bool, error)
	// Mount mounts an empty one at a folder.
	Mount(path string) error
	// Unmount takes what is mounted at a path off it, also while a process has files of it open.
	Unmount(path string) error
}

// Tmpfs is the Memory of Linux.
type Tmpfs struct {
	// Swapped is called after each mount of memory that the kernel may write to swap. It may be nil.
	Swapped func()
}

// Make mounts a file system at a path. There must be an empty folder, or nothing.
func Make(memory Memory, path string) error {
	if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the volume's folder: %w", err)
	}
	if err := emptyFolder(path); err != nil {
		return err
	}
	if err := memory.Mount(path); err != nil {
		return errors.Join(fmt.Errorf("mount memory at %s: %w", path, err), os.Remove(path))
	}
	return nil
}

func emptyFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at the volume's folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: an admin of the node removes it", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("look into the volume's folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty, and has %q: an admin of the node removes it", path, entries[0].Name())
	}
	return nil
}

// Remove leaves nothing of a volume. One that does not exist is removed already.
func Remove(memory Memory, path string) error {
	for {
		mounted, err := memory.Mounted(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !mounted {
			break
		}
		if err := memory.Unmount(path); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the volume's folder: %w", err)
	}
	return nil
}
