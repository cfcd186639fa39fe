package exectest

import (
	"sync"
	"time"
)

// Clock is an execcredential.Clock that stands still until the test moves it. Its zero value shows the zero time.
type Clock struct {
	mu     sync.Mutex
	change sync.Cond
	now    time.Time
	timers map[*timer]bool
}

type timer struct {
	at time.Time
	f  func()
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *Clock {
	return &Clock{now: now}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc calls f in a goroutine of its own when the clock was moved by d.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timers == nil {
		c.timers = map[*timer]bool{}
	}
	t := &timer{at: c.now.Add(d), f: f}
	c.timers[t] = true
	c.fire()
	c.change.Broadcast()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		waiting := c.timers[t]
		delete(c.timers, t)
		return waiting
	}
}

// Advance moves the clock, and starts what was waiting for that.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

// WaitForTimers returns when at least n functions wait for the clock.
func (c *Clock) WaitForTimers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change.L = &c.mu
	for len(c.timers) < n {
		c.change.Wait()
	}
}

func (c *Clock) fire() {
	for t := range c.timers {
		if !t.at.After(c.now) {
			delete(c.timers, t)
			go t.f()
		}
	}
}
