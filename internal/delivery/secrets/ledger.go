package secrets

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
)

// Ledger remembers Secrets by name.
type Ledger struct{ failures.Ledger[Entry] }

// Entry is the state of a Secret in memory: nothing that would be missed after a restart.
type Entry struct {
	failures.Record
	IssuedAt, Expiry time.Time    // of its token, or zero
	Version          string       // resource version that the Secret got by the last token
	tokens           renewal.Pace // of new tokens
	marks            renewal.Pace // of marks that its identity is missing
	copies           renewal.Pace // of copies of data
	minted           *minted      // a token that could not be written
	// mayUse is the last review that allowed a binding to be used, and mayUseAt its time.
	mayUse   string
	mayUseAt time.Time
	// deniedSince is since when each answer about the binding is a denial, or zero.
	deniedSince time.Time
}

// bindingAnswered remembers an answer about the binding. No answer changes nothing.
func (e *Entry) bindingAnswered(err error, now time.Time) {
	switch {
	case err != nil && !answered(err):
	case !failures.Of(err).Denied():
		e.deniedSince = time.Time{}
	case e.deniedSince.IsZero():
		e.deniedSince = now
	}
}

// deniedBefore reports whether the binding was denied long enough ago for another denial to count.
func (e Entry) deniedBefore(now time.Time) bool {
	return !e.deniedSince.IsZero() && now.Sub(e.deniedSince) >= confirmAfter
}

// reviewed reports whether a right was reviewed a short while ago.
func (e Entry) reviewed(right string, now time.Time) bool {
	return e.mayUse == right && now.Sub(e.mayUseAt) < reviewEvery
}

// Soonest returns the earliest expiry of all tokens, and the number of Secrets; zero if there is no token.
func (l *Ledger) Soonest() (soonest time.Time, secrets int) {
	l.Each(func(e Entry) {
		secrets++
		if !e.Expiry.IsZero() && (soonest.IsZero() || e.Expiry.Before(soonest)) {
			soonest = e.Expiry
		}
	})
	return soonest, secrets
}

// LongestLag is for how long after a write a cache may be behind. Resource versions that are older after that are those of a cluster
// that was restored from a backup.
const LongestLag = time.Minute

// stale reports whether a resource version of a Secret is older than what was written last: the cache is behind.
func (e Entry) stale(version string, now time.Time) bool {
	if e.Version == "" || now.Sub(e.tokens.Last) >= LongestLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, e.Version)
	return err == nil && order < 0
}
