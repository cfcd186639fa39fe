package execcredential

import "time"

// Clock is the time. exectest.Clock is one that tests move by hand.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own when d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
