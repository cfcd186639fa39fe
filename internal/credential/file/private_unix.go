//go:build unix

package file

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate refuses a file that is readable by all, or writable by others than its owner, and one of an owner other than
// this user and root. A group may read it: a pod that is not root reads mounted files by its group.
func checkPrivate(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return fmt.Errorf("%s has mode %#o, so that others have access to it: chmod 600 %s (in a pod, defaultMode: 0440)", path, mode, path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, but this process runs as uid %d", path, stat.Uid, os.Geteuid())
	}
	return nil
}
