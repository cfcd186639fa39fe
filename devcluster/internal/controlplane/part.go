package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// part is a component that runs until it is stopped, or fails.
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

// stop stops the part and reports whether it ended within the time.
func (p *part) stop(within time.Duration) bool {
	p.cancel()
	select {
	case <-p.done:
		return true
	case <-time.After(within):
		return false
	}
}

// reason is why a part ended that was not stopped.
func (p *part) reason() error {
	if p.err == nil {
		return errors.New(p.name + " ended by itself")
	}
	return fmt.Errorf("%s ended: %w", p.name, p.err)
}
