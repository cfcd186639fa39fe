package controllermanager

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// Subcommand is the argument that makes this binary the child.
	Subcommand = "kube-controller-manager"

	// listenerFD is where a child finds the first of its extra files.
	listenerFD = 3

	killAfter = 4 * time.Second
)

// Supervise runs kube-controller-manager as a child process that serves its
// health and metrics on listener. It returns when the child has ended: with an
// error when the child did so by itself, nil when ctx ended it.
func Supervise(ctx context.Context, settings Settings, listener *net.TCPListener) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	file, err := listener.File()
	if err != nil {
		return fmt.Errorf("hand over listener: %w", err)
	}
	defer file.Close()

	child := exec.CommandContext(ctx, executable, append([]string{Subcommand}, settings.args()...)...)
	child.ExtraFiles = []*os.File{file}
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = killAfter
	lifeline, err := child.StdinPipe()
	if err != nil {
		return fmt.Errorf("make lifeline: %w", err)
	}
	defer lifeline.Close()

	if err := child.Start(); err != nil {
		return fmt.Errorf("start process: %w", err)
	}
	// Only the child may hold it now: with nobody to accept, callers shall be refused.
	_, _ = file.Close(), listener.Close()
	err = child.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("process %d: %s", child.Process.Pid, outcome(child, err))
}

func outcome(child *exec.Cmd, err error) string {
	if child.ProcessState != nil {
		return child.ProcessState.String()
	}
	return err.Error()
}
