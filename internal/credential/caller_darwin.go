//go:build darwin

package credential

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// started is the start of a process, in seconds since 1970; empty if it cannot be read.
func started(pid int) string {
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	started := process.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", started.Sec, started.Usec)
}

// program is the program of a process. kubectl of the Google Cloud SDK requests once, and then execs the kubectl of the server's version.
func program(pid int) string {
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return word(unix.ByteSliceToString(process.Proc.P_comm[:]))
}
