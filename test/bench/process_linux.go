package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

// processClock reads the CPU clock of a process (clock_getcpuclockid(3)), which counts nanoseconds: rounds may be short. Unlike
// the sum over /proc/PID/task, it holds what threads used that have ended.
func processClock(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel: time on a CPU, user and system
	clock := int32(^pid)<<3 | scheduled
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(t.Nano()), nil
}

// detach gives a process a session of its own, as `credence up` does. Linux shares out CPUs by session (sched(7), autogroup): in
// the client's session a server is given its requests in larger batches, and has less to do for each.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// peakMB is the most memory that a process has held which has ended, files that are mapped included.
func peakMB(state *os.ProcessState) float64 {
	return float64(state.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}
