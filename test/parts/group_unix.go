//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group gives a command a process group of its own, which is interrupted when the command's context ends, and killed after its WaitDelay.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
