package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/credence-id/credence/internal/app/cli/command"
)

// interruption is why a context of untilInterrupted ended.
type interruption struct{ by os.Signal }

func (i *interruption) Error() string { return fmt.Sprintf("interrupted (%s)", i.by) }

// exitCode is the code by which shells report a program that a signal has ended.
func (i *interruption) exitCode() int {
	if number, ok := i.by.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return command.ExitRefused
}

// untilInterrupted returns a context that ends when this program is interrupted or terminated, or its terminal is closed, so that it can
// leave what is kept in order. A second interruption ends the program at once.
func untilInterrupted(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	end := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		end = append(end, syscall.SIGHUP)
	}
	signal.Notify(signals, end...)
	go func() {
		select {
		case by := <-signals:
			if by == syscall.SIGHUP {
				// Both the system and the shell signal it when a terminal is closed.
				signal.Ignore(syscall.SIGHUP)
			}
			signal.Stop(signals)
			cancel(&interruption{by: by})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// interrupted returns the interruption that has ended ctx, or nil.
func interrupted(ctx context.Context) *interruption {
	if i, ok := errors.AsType[*interruption](context.Cause(ctx)); ok {
		return i
	}
	return nil
}
