//go:build windows

package credential

import (
	"strconv"

	"golang.org/x/sys/windows"
)

// started is the start of a process, in nanoseconds since 1970; empty if it cannot be read.
func started(pid int) string {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return ""
	}
	return strconv.FormatInt(created.Nanoseconds(), 10)
}

// program is empty: no process execs another program here.
func program(int) string { return "" }
