// Package filelock has locks between processes. In goes a file; out comes its lock, which the system releases when the file is
// closed or the process ends, however it ends. It never removes a file: two processes would lock two files of one name.
package filelock

import "errors"

// ErrHeld is returned where another opening of the file has the lock, in this process or another.
var ErrHeld = errors.New("another process has the lock")
