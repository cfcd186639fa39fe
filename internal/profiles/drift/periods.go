package drift

import (
	"fmt"
	"time"
)

// Periods are how often a Controller looks, and how soon it acts.
type Periods struct {
	// Interval is the time between two looks.
	Interval time.Duration
	// Pace is for how long nothing is done after a change, as a person may take it back, and the time between two evictions of a profile.
	Pace time.Duration
}

// DefaultPeriods are the defaults of the flags.
var DefaultPeriods = Periods{Interval: 30 * time.Second, Pace: time.Minute}

// maxInterval keeps the time between looks, and what one takes, below that of the alert CredencePodsNotLookedAt.
const maxInterval = 5 * time.Minute

// Validate checks them, by the names of their flags.
func (p Periods) Validate() error {
	switch {
	case p.Interval < time.Second || p.Interval > maxInterval:
		return fmt.Errorf("--drift-interval %s must be between %s and %s", p.Interval, time.Second, maxInterval)
	case p.Pace < p.Interval:
		return fmt.Errorf("--drift-pace %s must be at least the --drift-interval, %s: pods are evicted when they are looked at", p.Pace, p.Interval)
	}
	return nil
}

// patience is the number of paces after which new pods that are not ready are reported.
const patience = 5

// moment is when something is decided, with the pace of the Controller.
type moment struct {
	time.Time
	pace time.Duration
}

// paces reports whether that many paces have passed since a time.
func (m moment) paces(n int, since time.Time) bool {
	return m.Sub(since) >= time.Duration(n)*m.pace
}
