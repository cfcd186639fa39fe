//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Running is a process that is alive, whichever process started it.
type Running struct {
	PID int
	// Program is the file name of its executable.
	Program string
	// Arguments are what it was started with, the program first.
	Arguments []string
}

// Alive reports whether a process exists and is more than a zombie.
func Alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return (err == nil || errors.Is(err, syscall.EPERM)) && !zombie(pid)
}

// Leftovers lists the processes of one of the programs that name folder, or a path below it, in their arguments.
func Leftovers(folder string, programs []string) ([]Running, error) {
	all, err := list()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return slices.DeleteFunc(all, func(r Running) bool {
		return !slices.Contains(programs, r.Program) || !names(r.Arguments, folder)
	}), nil
}

// names reports whether one of the arguments is folder or a path below it, alone or as the value of a flag.
func names(arguments []string, folder string) bool {
	return slices.ContainsFunc(arguments, func(argument string) bool {
		if _, value, isFlag := strings.Cut(argument, "="); isFlag {
			argument = value
		}
		return argument == folder || strings.HasPrefix(argument, folder+string(filepath.Separator))
	})
}

// End signals processes to end, and kills those that have not after grace or when ctx is done.
func End(ctx context.Context, left []Running, grace time.Duration) error {
	for _, r := range left {
		if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end %s (pid %d) that an earlier start left: %w", r.Program, r.PID, err)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if gone(waiting, left) {
		return nil
	}
	for _, r := range left {
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
	}
	// A killed process is gone as soon as the kernel gets to it; a minute is for one that hangs in the kernel.
	killed, cancelKilled := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancelKilled()
	if !gone(killed, left) {
		return fmt.Errorf("processes that an earlier start left do not end, not even when killed: %v", left)
	}
	return nil
}

func gone(ctx context.Context, left []Running) bool {
	for {
		if !slices.ContainsFunc(left, func(r Running) bool { return Alive(r.PID) }) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// String names the process as a person would look for it.
func (r Running) String() string { return fmt.Sprintf("%s (pid %d)", r.Program, r.PID) }
