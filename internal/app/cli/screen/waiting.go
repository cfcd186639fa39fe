package screen

import (
	"fmt"
	"time"
)

// patience is how long a network call may take before the user sees what is being waited for.
const patience = 2 * time.Second

// WaitingFor notes on standard error what is being waited for, unless stop is called before patience is over.
func (t *Terminal) WaitingFor(what string) (stop func()) {
	cancel := t.after(patience, func() { fmt.Fprintf(t.ErrOut, "waiting for %s ...\n", what) })
	return func() { cancel() }
}

// After returns a channel that is closed once a time has passed, unless stop is called before.
func (t *Terminal) After(d time.Duration) (over <-chan struct{}, stop func()) {
	closed := make(chan struct{})
	cancel := t.after(d, func() { close(closed) })
	return closed, func() { cancel() }
}
