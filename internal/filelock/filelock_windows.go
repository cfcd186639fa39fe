package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is an offset past the end of each lock file: its content can be read while it is locked.
const beyond = 1 << 30

// TakeOpen takes the lock of an open file, or returns ErrHeld.
func TakeOpen(file *os.File) error {
	place := windows.Overlapped{Offset: beyond}
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place)
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return ErrHeld
	case err != nil:
		return &os.PathError{Op: "lock", Path: file.Name(), Err: err}
	}
	return nil
}
