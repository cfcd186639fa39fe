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
