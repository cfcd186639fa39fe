package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// options bound a volume: two generations of its files, of which config may have 64 KiB. Pages are taken when they are written.
const options = "mode=0755,size=1m,nr_inodes=128"

// Supported returns an error where no volume can be made.
func Supported() error { return nil }

// Mount implements Memory. Kernels from 6.4 on keep it out of swap.
func (t Tmpfs) Mount(path string) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME
	err := unix.Mount("credence", path, "tmpfs", flags, options+",noswap")
	if errors.Is(err, unix.EINVAL) {
		if err = unix.Mount("credence", path, "tmpfs", flags, options); err == nil && t.Swapped != nil {
			t.Swapped()
		}
	}
	return err
}

// Mounted implements Memory. A folder that something is mounted at is of another device than its parent.
func (Tmpfs) Mounted(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	parent, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Dev == parent.Sys().(*syscall.Stat_t).Dev {
		return false, nil
	}
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return false, fmt.Errorf("look at what is mounted at %s: %w", path, err)
	}
	if system.Type != unix.TMPFS_MAGIC {
		return false, fmt.Errorf("something else than memory is mounted at %s: an admin of the node unmounts it", path)
	}
	return true, nil
}

// Unmount implements Memory.
func (Tmpfs) Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	return err
}
