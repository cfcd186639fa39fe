package child

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// listenerFD is where a child finds the first of its extra files.
const listenerFD = 3

// defaultGrace is for parts that have little to finish.
const defaultGrace = 4 * time.Second

// Spec is what to run.
type Spec struct {
	// Program is the file to run, which is killed when this process ends (on Linux). Empty: this binary.
	Program string
	// Args are those of the program. This binary takes the subcommand first.
	Args []string
	// Listener is handed over to the child, which takes it by Listener. It may be nil. Another Program does not take it: its port is free.
	Listener *net.TCPListener
	// Output gets what the child prints; nil: this process's stderr.
	Output io.Writer
	// Apart keeps a terminal's Ctrl-C from the child: this process stops it, in order.
	Apart bool
	// Namespaces gives the child mounts and a network of its own: what it makes of them is invisible to other processes, and ends with
	// the last process that has it. The network is empty. Linux only.
	Namespaces bool
	// Grace is how long the child may take to end on request; 0: four seconds.
	Grace time.Duration
	// Started is called with the child's process ID. It may be nil.
	Started func(pid int)
}

// Server is a component that serves on listener: the subcommand of this binary, or program, the file of a component of another version, which gets
// the port as a flag.
func Server(program, subcommand string, args []string, listener *net.TCPListener) Spec {
	if program == "" {
		return Spec{Args: append([]string{subcommand}, args...), Listener: listener}
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	return Spec{Program: program, Args: append(args, "--secure-port="+port), Listener: listener}
}

// Run runs a child process until it ends: with an error when it did so by itself, nil when ctx ended it.
func Run(ctx context.Context, spec Spec) error {
	executable := spec.Program
	if executable == "" {
		var err error
		if executable, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program's file: %w", err)
		}
	} else {
		// The kernel kills a child when the thread ends that made it (PR_SET_PDEATHSIG, prctl(2)): this one waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	child := exec.CommandContext(ctx, executable, spec.Args...)
	if spec.Output == nil {
		spec.Output = os.Stderr
	}
	child.Stdout, child.Stderr = spec.Output, spec.Output
	child.SysProcAttr = attributes(spec)
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = cmp.Or(spec.Grace, defaultGrace)
	lifeline, err := child.StdinPipe()
	if err != nil {
		return fmt.Errorf("make lifeline: %w", err)
	}
	defer lifeline.Close()
	if err := start(child, spec); err != nil {
		return err
	}
	if spec.Started != nil {
		spec.Started(child.Process.Pid)
	}
	err = child.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("process %d: %s", child.Process.Pid, outcome(child, err))
}

func start(child *exec.Cmd, spec Spec) error {
	if spec.Listener == nil {
		return startProcess(child)
	}
	if spec.Program != "" {
		if err := spec.Listener.Close(); err != nil {
			return fmt.Errorf("free the port of %s: %w", spec.Program, err)
		}
		return startProcess(child)
	}
	file, err := spec.Listener.File()
	if err != nil {
		return fmt.Errorf("hand over listener: %w", err)
	}
	defer file.Close()
	child.ExtraFiles = []*os.File{file}
	if err := startProcess(child); err != nil {
		return err
	}
	// Only the child may hold it now: if it does not accept, callers shall be refused.
	return spec.Listener.Close()
}

func startProcess(child *exec.Cmd) error {
	if err := child.Start(); err != nil {
		return fmt.Errorf("start process: %w", err)
	}
	return nil
}

func outcome(child *exec.Cmd, err error) string {
	if child.ProcessState != nil {
		return child.ProcessState.String()
	}
	return err.Error()
}

// DieWithParent, in a child, ends the process at the end of its stdin, a pipe whose other end only the parent holds: the
// kernel closes it even when the parent is killed. It returns at once.
func DieWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// Listener, in a child, is the listener that its parent handed over.
func Listener() (net.Listener, error) {
	file := os.NewFile(listenerFD, "listener")
	if file == nil {
		return nil, fmt.Errorf("file descriptor %d is not the parent's listener", listenerFD)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take over the parent's listener: %w", err)
	}
	return listener, nil
}
