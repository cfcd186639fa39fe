package keystore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/keyring/keys"
)

const (
	// minInterval is the shortest Interval: readers must not keep a store busy.
	minInterval = time.Second
	// minPause is between two reads, however many changes a watch reports.
	minPause = 200 * time.Millisecond
	// firstRetry is the pause after a first failure; it doubles up to the Interval.
	firstRetry = 500 * time.Millisecond
	// loadTimeout is for a store that does not answer.
	loadTimeout = 10 * time.Second
)

// Following is what Follow needs. Both functions are called one at a time, and never after Follow has returned.
type Following struct {
	// Interval is the longest pause between the end of a read and the next one, at least a second. The shortest is three
	// quarters of it, so that replicas that start together do not stay together.
	Interval time.Duration
	// Clock gives the times of reads, and the pauses.
	Clock clock.Clock
	// Random returns numbers in [0, 1).
	Random func() float64
	// OnRing is given the stored ring after every read, changed or not. readAt is from before the read began: at that time
	// or later, this was the stored ring.
	OnRing func(ring keys.Ring, version string, readAt time.Time)
	// OnError is given each error of Load, among them ErrNotFound and ErrUnusable.
	OnError func(error)
	// OnUnwatched is given the errors of a watch, which only delay the detection of changes. nil: ignored.
	OnUnwatched func(error)
}

// Watcher is a store that reports when the ring may have changed. Watch returns nil if it just ended.
type Watcher interface {
	Watch(ctx context.Context, changed func()) error
}

// Follow reads the stored ring at once and repeatedly until ctx is done: at least every Interval, soon after an
// error, and at once when a watch reports a change. A ring is never taken from a watch, which can be late
// without notice; it only makes Follow read. An error is returned only for invalid settings.
func Follow(ctx context.Context, store Store, with Following) error {
	if with.Interval < minInterval {
		return fmt.Errorf("follow ring: interval %v is too short, it must be at least %v", with.Interval, minInterval)
	}
	f := &follower{Following: with, store: store, retry: firstRetry, changed: make(chan struct{}, 1), watchEnded: make(chan error, 1)}
	f.run(ctx)
	return nil
}

type follower struct {
	Following
	store Store
	// retry is the pause after the next failure.
	retry time.Duration
	// changed holds that the store has changed since the last read, or nothing.
	changed chan struct{}
	// watchEnded is given how the only running watch ended.
	watchEnded chan error
	watching   bool
	watches    sync.WaitGroup
}

func (f *follower) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer f.watches.Wait()
	defer cancel()
	due := true
	for ctx.Err() == nil {
		pause, ok := f.read(ctx)
		// A watch that ended is begun again no more often than the store is polled.
		if ok && due {
			f.watch(ctx)
		}
		due = f.rest(ctx, pause)
	}
}

// read reports the stored ring or the error, and returns the pause until the next read.
func (f *follower) read(ctx context.Context) (pause time.Duration, ok bool) {
	attempt, cancel := withTimeout(ctx, f.Clock, loadTimeout)
	readAt := f.Clock.Now()
	ring, version, err := f.store.Load(attempt)
	cancel()
	switch {
	case ctx.Err() != nil:
		return 0, false
	case err != nil:
		pause, f.retry = f.retry, min(2*f.retry, f.Interval)
		f.OnError(err)
	default:
		pause, f.retry = f.Interval, firstRetry
		f.OnRing(ring, version, readAt)
	}
	return pause - time.Duration(f.Random()*float64(pause)/4), err == nil
}

// watch begins to watch a store that can be watched, unless it does so already.
func (f *follower) watch(ctx context.Context) {
	store, ok := f.store.(Watcher)
	if !ok || f.watching {
		return
	}
	f.watching = true
	f.watches.Go(func() {
		f.watchEnded <- store.Watch(ctx, func() {
			select {
			case f.changed <- struct{}{}:
			default:
			}
		})
	})
}

// rest waits for the end of the pause or, after a shorter one, for a change. It returns whether the pause has ended.
func (f *follower) rest(ctx context.Context, pause time.Duration) (due bool) {
	quiet := f.Clock.NewTimer(minPause)
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-quiet.C():
	}
	end := f.Clock.NewTimer(pause - minPause)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C():
			return true
		case <-f.changed:
			return false
		case err := <-f.watchEnded:
			f.watching = false
			if err != nil && f.OnUnwatched != nil {
				f.OnUnwatched(err)
			}
		}
	}
}

// withTimeout is context.WithTimeout by a clock that is passed in.
func withTimeout(parent context.Context, by clock.Clock, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	timer := by.NewTimer(timeout)
	go func() {
		select {
		case <-timer.C():
			cancel(fmt.Errorf("no answer within %v", timeout))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}
