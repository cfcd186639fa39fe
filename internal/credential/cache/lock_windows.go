//go:build windows

package cache

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is an offset past the end of each lock file: its content can be read while it is locked.
const beyond = 1 << 30

// lockFile takes the lock of an open file, or returns errBusy. The system releases it when the file is closed.
func lockFile(file *os.File) error {
	place := windows.Overlapped{Offset: beyond}
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errBusy
	}
	return err
}
