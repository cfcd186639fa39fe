package testkit

import (
	"context"
	"errors"
	"testing"
	"time"
)

const (
	// patience is what no machine needs.
	patience = 5 * time.Minute
	// shortPause is for what happens in this process, longPause for what other processes do.
	shortPause, longPause = 2 * time.Millisecond, 100 * time.Millisecond
	// longestPause is between two looks at what has not happened for long, or takes long to look at.
	longestPause = 2 * time.Second
)

// Eventually waits until a condition holds. It gives up after what no machine needs, and fails the test.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	wait(t, patience, shortPause, func(context.Context) error {
		if !condition() {
			return errors.New(what)
		}
		return nil
	})
}

// Wait is Eventually for other processes, whose state is an error, and nil at last. The context ends when it gives up.
func Wait(t testing.TB, check func(context.Context) error) {
	t.Helper()
	WaitFor(t, patience, check)
}

// WaitFor is Wait with another limit.
func WaitFor(t testing.TB, limit time.Duration, check func(context.Context) error) {
	t.Helper()
	wait(t, limit, longPause, check)
}

// final is an error that waiting does not mend.
type final interface {
	error
	Final()
}

func wait(t testing.TB, limit, pause time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // also in cleanups
	defer cancel()
	var last error
	for begun := time.Now(); ; {
		looked := time.Now()
		err := check(ctx)
		if err == nil {
			return
		}
		if _, ok := errors.AsType[final](err); ok {
			t.Fatal(err)
		}
		if ctx.Err() == nil || last == nil { // not that the time is up
			last = err
		}
		select {
		case <-time.After(pauseAfter(pause, time.Since(looked), time.Since(begun))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			t.Fatalf("gave up waiting: %v", last)
		}
	}
}

// pauseAfter is the pause after a look that took some time, as a part of a wait. A look at other processes may run a program, and others wait on the
// same machine: looking must not be what it is busy with. So a pause is twice as long as the look, and a twentieth of the wait. A look at this
// process may step a clock, and needs its number of looks.
func pauseAfter(least, look, waited time.Duration) time.Duration {
	if least < longPause {
		return least
	}
	return max(least, min(max(2*look, waited/20), longestPause))
}
