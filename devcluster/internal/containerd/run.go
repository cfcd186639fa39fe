//go:build linux

package containerd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/credence-id/credence/devcluster/internal/state"
)

const killAfter = 5 * time.Second

// Prepare writes the configuration.
func (s Settings) Prepare() error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return fmt.Errorf("make containerd's folder: %w", err)
	}
	return state.WriteFile(s.configFile(), s.config(), 0o600)
}

// Run runs containerd until it ends: with an error when it did so by itself, nil when ctx ended it. Its pods live on. It is
// killed when this process ends, however this process ends. started is called with its process ID.
func (s Settings) Run(ctx context.Context, output io.Writer, started func(pid int)) error {
	// The kernel kills a child when the thread ends that made it (PR_SET_PDEATHSIG, prctl(2)): this one waits for it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.CommandContext(ctx, s.Programs.Containerd, "--config", s.configFile())
	command.Stdout, command.Stderr = output, output
	command.Dir = s.Folder
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
