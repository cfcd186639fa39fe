//go:build unix

package up

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupts returns a context that is done at the first request to stop, and one that is done at the second: a user who repeats
// it does not want to wait.
func interrupts(parent context.Context) (first, second context.Context, release func()) {
	signals := make(chan os.Signal, 4)
	wanted := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		// nohup is to outlive the terminal.
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	first, stop := context.WithCancelCause(context.WithoutCancel(parent))
	// A caller's context that is done has the effect of a signal.
	unlink := context.AfterFunc(parent, func() { stop(errInterrupted) })
	second, kill := context.WithCancel(context.WithoutCancel(parent))
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				if first.Err() != nil {
					kill()
				}
				stop(errInterrupted)
			case <-done:
				return
			}
		}
	}()
	return first, second, func() {
		signal.Stop(signals)
		close(done)
		unlink()
		stop(nil)
		kill()
	}
}
