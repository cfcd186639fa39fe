//go:build unix

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/up/process"
	"github.com/credence-id/credence/internal/app/up/progress"
)

// progressDescriptor is where the process that stays finds the pipe to the one that waits.
const progressDescriptor = 3

// detach starts this program once more in a session of its own, shows its progress, and returns when it is ready or gone.
func detach(ctx context.Context, r *run, executable string, flags upFlags, streams genericiooptions.IOStreams) error {
	// A log of a supervisor that runs must stay its own.
	lock, err := r.dir.Acquire()
	if err != nil {
		return err
	}
	logFile := r.dir.Log("up")
	err = process.Rotate(logFile)
	if releaseErr := lock.Release(); err == nil {
		err = releaseErr
	}
	if err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for progress: %w", err)
	}
	defer func() { _ = reader.Close() }()
	first, second, release := interrupts(ctx)
	defer release()
	child, err := startDetached(r, executable, flags, logFile, writer)
	_ = writer.Close()
	if err != nil {
		return err
	}
	// In its own session it does not see the terminal's Ctrl-C.
	defer context.AfterFunc(first, func() { _ = child.Process.Signal(syscall.SIGTERM) })()
	defer context.AfterFunc(second, func() { _ = child.Process.Signal(syscall.SIGTERM) })()

	sink, closeSink := display(streams, r.now)
	outcome, err := progress.Decode(reader, sink)
	closeSink()
	switch {
	case err != nil:
		_ = child.Wait()
		return fmt.Errorf("the background process ended: %s, log file %s", process.CauseIn(logFile, 0), logFile)
	case outcome.What == progress.Failed:
		_ = child.Wait()
		return errors.New(outcome.Text)
	}
	config, _, err := r.dir.LoadConfig()
	if err != nil {
		return err
	}
	r.config = config
	return writeSummary(streams.Out, r.installation)
}

func startDetached(r *run, executable string, flags upFlags, logFile string, progressPipe *os.File) (*exec.Cmd, error) {
	log, err := os.OpenFile(logFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start in the background: %w", err)
	}
	defer func() { _ = log.Close() }()
	arguments := []string{"up", "--supervise", "--dir", string(r.dir), "--port", strconv.Itoa(flags.port), "--storage", flags.storage, "--delivery", flags.delivery}
	if flags.node {
		arguments = append(arguments, "--node")
	}
	if r.imageRegistries != "" {
		arguments = append(arguments, "--image-registries", r.imageRegistries)
	}
	if r.guard != "" {
		arguments = append(arguments, "--guard", r.guard)
	}
	if r.guardAllow != "" {
		arguments = append(arguments, "--guard-allow", r.guardAllow)
	}
	for _, extra := range flags.extra {
		arguments = append(arguments, "--arg", extra)
	}
	child := exec.Command(executable, arguments...)
	child.Dir = string(r.dir)
	child.Stdout, child.Stderr = log, log
	child.ExtraFiles = []*os.File{progressPipe}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("start in the background: %w", err)
	}
	return child, nil
}

// superviseDetached is what the background process does: its progress goes to its log and, until it is ready, to the
// process that waits.
func superviseDetached(ctx context.Context, r *run, port int, streams genericiooptions.IOStreams) error {
	syscall.CloseOnExec(progressDescriptor)
	waiting := os.NewFile(progressDescriptor, "progress")
	if waiting == nil {
		return errors.New("--supervise is for credence up --detach only")
	}
	defer func() { _ = waiting.Close() }()
	first, second, release := interrupts(ctx)
	defer release()
	encoder := progress.NewEncoder(waiting)
	r.tracker = progress.NewTracker(progress.Sinks{progress.NewLines(streams.ErrOut), encoder}, r.now)
	ready := false
	r.settled = func(r *run) error {
		ready = true
		r.tracker.Close(progress.Ready, "ready")
		return waiting.Close()
	}
	err := r.hold(first, second, port)
	if err != nil && !ready {
		encoder.Show(progress.Event{What: progress.Failed, Text: err.Error(), At: r.tracker.Elapsed()})
	}
	return err
}
