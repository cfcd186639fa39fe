//go:build unix

package guard

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func checkWriters(file *os.File, info fs.FileInfo) error {
	path := file.Name()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d: chown root %s", path, stat.Uid, path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %#o, so that other users can write it: chmod go-w %s", path, mode, path)
	}
	return nil
}
