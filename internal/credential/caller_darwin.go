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
