//go:build unix

package process

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that was started, and leads a process group.
type Process struct {
	spec      Spec
	command   *exec.Cmd
	logOffset int64
	done      chan struct{}
	exit      Exit
}

// Exit is how a process ended.
type Exit struct {
	Name    string
	PID     int
	LogFile string
	// Status is such as "exit status 1" or "signal: killed".
	Status string
	// Cause is the line of the log that explains the end best; empty if it printed nothing, or was killed by a signal: then
	// its log knows no cause.
	Cause string
}

// PID is the id of the process and of its group.
func (p *Process) PID() int { return p.command.Process.Pid }

// Done is closed once the process and its whole group have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the process ended; it is valid once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

func (p *Process) wait() {
	defer close(p.done)
	err := p.command.Wait()
	p.endGroup()
	p.exit = Exit{Name: p.spec.Name, PID: p.PID(), LogFile: p.spec.LogFile, Status: "exit status 0"}
	if err != nil {
		p.exit.Status = err.Error()
	}
	if p.command.ProcessState.Exited() {
		p.exit.Cause = CauseIn(p.spec.LogFile, p.logOffset)
	}
}

// groupPatience bounds the wait for killed orphans: without a working init they stay zombies for ever.
const groupPatience = 2 * time.Second

// endGroup kills what the leader left behind: it would hold the ports that the next start needs.
func (p *Process) endGroup() {
	group := -p.PID()
	deadline := time.Now().Add(groupPatience)
	for time.Now().Before(deadline) {
		if err := syscall.Kill(group, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Stop signals the process to end (SIGTERM), and kills its group after grace or as soon as ctx is done. It returns when
// nothing of it is left.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	if ctx.Err() == nil {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	_ = p.command.Process.Kill()
	<-p.done
}
