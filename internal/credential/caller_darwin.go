//go:build darwin

package credential

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Parent is the process that started this one.
func Parent() Caller {
	caller := Caller{PID: os.Getppid()}
	if process, err := unix.SysctlKinfoProc("kern.proc.pid", caller.PID); err == nil {
		started := process.Proc.P_starttime
		caller.Started = fmt.Sprintf("%d.%06d", started.Sec, started.Usec)
	}
	return caller
}
