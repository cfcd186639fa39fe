//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkAccess refuses what belongs to another user, or gives any right to group or others.
func checkAccess(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is not known", path)
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("%s belongs to uid %d, but this process runs as uid %d: run it as that user, or choose another folder", path, stat.Uid, uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o, so that other users have access to it: take it from them (chmod go= %s), or choose another folder", path, mode, path)
	}
	return nil
}
