//go:build !linux && !darwin && !windows

package credential

import "os"

// Parent is the process that started this one; when it started is not known.
func Parent() Caller { return Caller{PID: os.Getppid()} }
