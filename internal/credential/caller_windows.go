//go:build windows

package credential

import (
	"os"
	"strconv"

	"golang.org/x/sys/windows"
)

// Parent is the process that started this one.
func Parent() Caller {
	caller := Caller{PID: os.Getppid()}
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(caller.PID))
	if err != nil {
		return caller
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &created, &exited, &kernel, &user) == nil {
		caller.Started = strconv.FormatInt(created.Nanoseconds(), 10)
	}
	return caller
}
