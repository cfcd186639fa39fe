package execcredential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/term"
)

// run returns what the program wrote. It returns when the program has ended, and its output with it; what it started and left behind
// may go on, except if the run failed.
func (p *program) run(ctx context.Context, prepared *exec.Cmd, interactive bool, timeout time.Duration) ([]byte, *tail, error) {
	// Linux ends the program with the thread that started it, so this one stays until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	command := exec.CommandContext(ctx, prepared.Path)
	command.Args, command.Env = prepared.Args, prepared.Env
	stdout, stderr := &limited{overflow: func() { cancel(errOverflow) }}, &tail{}
	command.Stdout = stdout
	command.Stderr = io.MultiWriter(stderr, p.messages)
	if interactive {
		command.Stdin = p.stdin
		if file, ok := p.stderr.(*os.File); ok {
			command.Stderr = file // prompts look whether they write to a terminal
		}
	}
	command.WaitDelay = drain
	var terminal *term.State
	if interactive {
		terminal, _ = term.GetState(int(p.stdin.Fd()))
	}
	tree := newProcessTree(command, interactive)
	command.Cancel = tree.terminate
	if err := command.Start(); err != nil {
		if ctx.Err() != nil {
			return nil, stderr, context.Cause(ctx)
		}
		return nil, stderr, startError(prepared.Path, err)
	}
	defer tree.close()
	if timeout > 0 {
		defer p.clock.AfterFunc(timeout, func() { cancel(errTimedOut) })()
	}
	if err := tree.begun(); err != nil {
		cancel(fmt.Errorf("exec credential: keep %q together with what it starts: %w", prepared.Path, err))
	}
	err := command.Wait()
	switch {
	case stdout.full:
		err = errOverflow
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	if err != nil {
		tree.kill()
		if terminal != nil {
			// A program that is ended while it reads a password leaves a terminal that shows nothing.
			_ = term.Restore(int(p.stdin.Fd()), terminal)
		}
	}
	return stdout.kept, stderr, err
}

// limited keeps the first part of what is written to it, and records that there was more. It has no ReadFrom, which io.Copy would prefer
// to Write.
type limited struct {
	kept     []byte
	full     bool
	overflow func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.full {
		return len(p), nil
	}
	if len(l.kept)+len(p) > outputLimit {
		l.full = true
		l.overflow()
		return len(p), nil
	}
	l.kept = append(l.kept, p...)
	return len(p), nil
}

// lenient keeps a program going when its messages are not read, and lets it end: os/exec waits for what is being written. A message
// that comes while the one before is still unread is lost.
type lenient struct {
	to   io.Writer
	busy chan struct{} // holds one: the message that is being written
}

func newLenient(to io.Writer) *lenient { return &lenient{to: to, busy: make(chan struct{}, 1)} }

func (l *lenient) Write(p []byte) (int, error) {
	select {
	case l.busy <- struct{}{}:
	default:
		return len(p), nil
	}
	written, copied := make(chan struct{}), bytes.Clone(p)
	go func() {
		_, _ = l.to.Write(copied)
		<-l.busy
		close(written)
	}()
	patience := time.NewTimer(drain)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
	}
	return len(p), nil
}
