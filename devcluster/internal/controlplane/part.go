package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// part is a component that runs until it is told to stop, or fails.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

// launch runs a component apart from ctx's end: parts are stopped one by one, in order.
func launch(ctx context.Context, name string, run func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = run(ctx)
	}()
	return p
}

// stop tells the part to stop and says whether it did within the time.
func (p *part) stop(within time.Duration) bool {
	p.cancel()
	select {
	case <-p.done:
		return true
	case <-time.After(within):
		return false
	}
}

// reason is why a part ended that nobody told to stop.
func (p *part) reason() error {
	if p.err == nil {
		return errors.New(p.name + " ended without being told to")
	}
	return fmt.Errorf("%s ended: %w", p.name, p.err)
}
