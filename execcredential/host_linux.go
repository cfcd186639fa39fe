package execcredential

import (
	"os"
	"syscall"
)

// attributes put a program into a process group of its own, and end it together with this process: it no longer gets the signals of
// the terminal.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGTERM}
}

// systemLimits are those of execve(2): 32 pages for each string, and a quarter of the stack, at most 6 MiB, for all.
func systemLimits() limits {
	l := limits{each: 32*os.Getpagesize() - 1, total: 6 << 20}
	var stack syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &stack); err == nil && stack.Cur/4 < uint64(l.total) {
		l.total = max(int(stack.Cur/4), 128<<10)
	}
	return l
}
