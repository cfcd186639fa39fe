package failures

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/delivery/renewal"
)

// Record is the last failures of an object.
type Record struct {
	Failures   int       // in a row
	RetryAt    time.Time // not before
	Digest     string    // the inputs of the failures: other inputs are tried at once
	Reported   Failure   // that of the last Event
	ReportedAt time.Time
}

// Failed counts a failure, and returns how long to wait: at most longest, if that is not 0.
func (r *Record) Failed(digest string, now time.Time, longest time.Duration, random func() float64) time.Duration {
	if r.Digest != digest {
		r.Failures, r.Digest = 0, digest
	}
	r.Failures++
	wait := renewal.Backoff(r.Failures, random)
	if longest > 0 && wait > longest {
		wait = longest/2 + time.Duration(float64(longest/2)*random())
	}
	r.RetryAt = now.Add(wait)
	return wait
}

// Wait returns how long an object must wait because of failures for the same inputs.
func (r *Record) Wait(digest string, now time.Time) time.Duration {
	if r.Failures == 0 || r.Digest != digest || !r.RetryAt.After(now) {
		return 0
	}
	return r.RetryAt.Sub(now)
}

// Report reports whether a failure is to be written as an Event: when it is another than before, and again from time to time.
func (r *Record) Report(f Failure, now time.Time) bool {
	if r.Reported == f && now.Sub(r.ReportedAt) < Again {
		return false
	}
	r.Reported, r.ReportedAt = f, now
	return true
}

// Ledger remembers objects by name: nothing that would be missed after a restart.
type Ledger[E any] struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]E
}

// Get returns what is remembered of an object.
func (l *Ledger[E]) Get(key types.NamespacedName) E {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

// Change changes what is remembered of an object, and returns it.
func (l *Ledger[E]) Change(key types.NamespacedName, change func(*E)) E {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[types.NamespacedName]E{}
	}
	e := l.entries[key]
	change(&e)
	l.entries[key] = e
	return e
}

// Forget drops an object.
func (l *Ledger[E]) Forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}

// Each visits all objects.
func (l *Ledger[E]) Each(visit func(E)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		visit(e)
	}
}
