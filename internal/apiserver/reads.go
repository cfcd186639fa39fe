package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// reads is the check of /readyz that the server has read what it follows. Until then it answers 503 to requests that need that, which
// another replica can answer. Once passed, it passes always: what the others serve does not depend on a watch that has ended.
type reads struct {
	// of reports for each thing that is followed whether it has been read.
	of    map[string]func() bool
	clock clock.PassiveClock

	mu     sync.Mutex
	passed bool
	// since is when the first check was.
	since time.Time
}

// patience is for how long what cannot be read, such as objects of a ContextKind that the cluster does not serve, holds up the others. Lost
// keys must not do so for ever: the command that goes on without them is a request to this server.
const patience = 10 * time.Second

// Name implements healthz.HealthChecker.
func (*reads) Name() string { return "followed-objects" }

// Check implements healthz.HealthChecker.
func (r *reads) Check(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passed {
		return nil
	}
	now := r.clock.Now()
	if r.since.IsZero() {
		r.since = now
	}
	var missing []string
	for name, read := range r.of {
		if !read() {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 && now.Sub(r.since) < patience {
		slices.Sort(missing)
		return fmt.Errorf("not read yet: %s", strings.Join(missing, ", "))
	}
	r.passed = true
	return nil
}
