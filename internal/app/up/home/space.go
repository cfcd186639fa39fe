//go:build unix

package home

import (
	"fmt"
	"syscall"
)

// NeededSpace is what a first start writes and the first days add, in bytes: etcd preallocates its write-ahead logs.
const NeededSpace = 300 << 20

// CheckSpace is an error if the file system of d has less than needed bytes free for this user.
func (d Dir) CheckSpace(needed uint64) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(string(d), &stat); err != nil {
		return fmt.Errorf("get the free space of %s: %w", d, err)
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < needed {
		return fmt.Errorf("%s has %d MiB of free disk space and about %d MiB are needed: make room there, or choose another --dir",
			d, free>>20, needed>>20)
	}
	return nil
}
