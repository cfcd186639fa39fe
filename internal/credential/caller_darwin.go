//go:build darwin

package credential

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// started tells when a process was started, in seconds since 1970; empty if it cannot be told.
func started(pid int) string {
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	started := process.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", started.Sec, started.Usec)
}

// program tells what a process runs. kubectl of the Google Cloud SDK asks once, and then becomes the kubectl of the server's version.
func program(pid int) string {
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return word(unix.ByteSliceToString(process.Proc.P_comm[:]))
}
