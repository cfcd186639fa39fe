//go:build unix

package source

import (
	"os"
	"syscall"
)

// ownerOf returns the user that a file belongs to; -1: it is not known.
func ownerOf(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
