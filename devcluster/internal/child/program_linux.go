package child

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const killAfter = 5 * time.Second

// RunProgram runs a program that is not this binary until it ends: with an error when it did so by itself, nil when ctx ended it, which the
// command was made with. It is killed when this process ends, however this process ends. started is called with its process ID.
func RunProgram(ctx context.Context, command *exec.Cmd, output io.Writer, started func(pid int)) error {
	// The kernel kills a child when the thread ends that made it (PR_SET_PDEATHSIG, prctl(2)): this one waits for it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killAfter
	if err := command.Start(); err != nil {
		return fmt.Errorf("start process: %w", err)
	}
	started(command.Process.Pid)
	err := command.Wait()
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("process %d: %w", command.Process.Pid, err)
	}
	return fmt.Errorf("process %d: %s", command.Process.Pid, command.ProcessState)
}
