package delivery

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/credence-id/credence/internal/delivery/renewal"
)

// entry is the state of a Secret in memory: nothing that would be missed after a restart.
type entry struct {
	expiry     time.Time // of its token, or zero
	failures   int       // in a row
	retryAt    time.Time // not before
	digest     string    // the inputs of the failures: other inputs are tried at once
	reported   failure   // that of the last Event
	reportedAt time.Time
	tokens     pace    // of new tokens
	marks      pace    // of marks that its identity is missing
	minted     *minted // a token that could not be written
	version    string  // resource version that the Secret got by the last token
}

// ledger remembers Secrets by name.
type ledger struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]entry
}

func newLedger() *ledger { return &ledger{entries: map[types.NamespacedName]entry{}} }

func (l *ledger) get(key types.NamespacedName) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key]
}

func (l *ledger) change(key types.NamespacedName, change func(*entry)) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	change(&e)
	l.entries[key] = e
	return e
}

func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, key)
}

// soonest returns the earliest expiry of all tokens, and the number of Secrets; zero if there is no token.
func (l *ledger) soonest() (time.Time, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var soonest time.Time
	for _, e := range l.entries {
		if !e.expiry.IsZero() && (soonest.IsZero() || e.expiry.Before(soonest)) {
			soonest = e.expiry
		}
	}
	return soonest, len(l.entries)
}

// failed counts a failure, and returns how long to wait: at most longest, if that is not 0.
func (l *ledger) failed(key types.NamespacedName, digest string, now time.Time, longest time.Duration, random func() float64) time.Duration {
	var wait time.Duration
	l.change(key, func(e *entry) {
		if e.digest != digest {
			e.failures, e.digest = 0, digest
		}
		e.failures++
		if wait = renewal.Backoff(e.failures, random); longest > 0 && wait > longest {
			wait = longest/2 + time.Duration(float64(longest/2)*random())
		}
		e.retryAt = now.Add(wait)
	})
	return wait
}

// wait returns how long a Secret must wait because of failures for the same inputs.
func (e entry) wait(digest string, now time.Time) time.Duration {
	if e.failures == 0 || e.digest != digest || !e.retryAt.After(now) {
		return 0
	}
	return e.retryAt.Sub(now)
}

// soon is how soon after a write a second one is odd: another writer changes the Secret as often as it is written.
const soon = 10 * time.Second

// pace is that of writes of one kind.
type pace struct {
	last  time.Time
	quick int // writes in a row that came too soon after one another
}

// hold returns how long the next write must wait because there were too many.
func (p pace) hold(now time.Time, random func() float64) time.Duration {
	if p.quick == 0 {
		return 0
	}
	return max(0, p.last.Add(renewal.Backoff(p.quick+1, random)).Sub(now))
}

func (p pace) after(now time.Time) pace {
	if !p.last.IsZero() && now.Sub(p.last) < soon<<min(p.quick, 5) {
		return pace{now, p.quick + 1}
	}
	return pace{last: now}
}

// wrote records that a Secret was given a token, and has this resource version since.
func (l *ledger) wrote(key types.NamespacedName, version string, expiry, now time.Time) {
	l.change(key, func(e *entry) { *e = entry{expiry: expiry, tokens: e.tokens.after(now), version: version} })
}

// longestLag is for how long after a write a cache may be behind. Resource versions that are older after that are those of a cluster
// that was restored from a backup.
const longestLag = time.Minute

// stale reports whether a resource version of a Secret is older than what was written last: the cache is behind.
func (l *ledger) stale(key types.NamespacedName, version string, now time.Time) bool {
	e := l.get(key)
	if e.version == "" || now.Sub(e.tokens.last) >= longestLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, e.version)
	return err == nil && order < 0
}

// marked is for writes without a token.
func (l *ledger) marked(key types.NamespacedName, now time.Time) {
	l.change(key, func(e *entry) { e.marks = e.marks.after(now) })
}
