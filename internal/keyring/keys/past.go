package keys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Past is what is remembered of a ring outside of it: in the KeyRing, beside the published documents, by a process.
type Past struct {
	// Published are keys that were published, by ID.
	Published map[identity.KeyID]identity.Algorithm
	// Revoked are keys that were revoked. By and Reason are empty where they are not known.
	Revoked []Compromised
	// Revision is the highest that the ring is known to have had.
	Revision int64
}

// Empty reports whether nothing is remembered.
func (p Past) Empty() bool { return len(p.Published) == 0 && len(p.Revoked) == 0 }

// Join returns what either remembers. Of two accounts of a revocation the first stays that has a reason.
func (p Past) Join(other Past) Past {
	joined := Past{Published: map[identity.KeyID]identity.Algorithm{}, Revision: max(p.Revision, other.Revision)}
	for _, each := range []Past{p, other} {
		maps.Copy(joined.Published, each.Published)
		for _, gone := range each.Revoked {
			i := slices.IndexFunc(joined.Revoked, func(c Compromised) bool { return c.ID == gone.ID })
			switch {
			case i < 0:
				joined.Revoked = append(joined.Revoked, gone)
			case joined.Revoked[i].By == "":
				joined.Revoked[i] = gone
			}
		}
	}
	return joined
}

// Past is what a ring remembers of itself.
func (r Ring) Past() Past {
	past := Past{Published: map[identity.KeyID]identity.Algorithm{}, Revoked: slices.Clone(r.Compromised), Revision: r.Revision}
	for _, key := range r.Keys {
		past.Published[key.ID] = key.Algorithm
	}
	return past
}

// Lacks returns the part of a past that a ring does not know; empty if it knows all. A ring forgets no key that was published lately,
// and keeps the last thousand revoked ones: one that lacks such a key is older than the past, or another one.
func (r Ring) Lacks(past Past) string {
	for _, gone := range past.Revoked {
		if !r.knowsRevoked(gone) {
			return fmt.Sprintf("key %s was revoked at %s, which the stored ring does not know", gone.ID, gone.RevokedAt.UTC().Format(time.RFC3339))
		}
	}
	for _, id := range past.published() {
		if !r.remembers(id) {
			return fmt.Sprintf("key %s was published, which the stored ring does not know", id)
		}
	}
	return ""
}

// published are the IDs of the keys that were published, in alphabetical order.
func (p Past) published() []identity.KeyID {
	return slices.Sorted(maps.Keys(p.Published))
}

// knowsRevoked reports whether a key that was revoked is in the list of such keys, or was in it before all that are there now.
func (r Ring) knowsRevoked(gone Compromised) bool {
	if slices.ContainsFunc(r.Compromised, func(c Compromised) bool { return c.ID == gone.ID }) {
		return true
	}
	return r.index(gone.ID) < 0 && len(r.Compromised) >= maxCompromised && !gone.RevokedAt.After(r.Compromised[r.oldestRevoked()].RevokedAt)
}

// oldestRevoked is the index of the revoked key that is dropped next. The last of an algorithm that has signed is kept: it is why
// no key may sign now.
func (r Ring) oldestRevoked() int {
	kept := map[identity.Algorithm]int{}
	for i, gone := range r.Compromised {
		if last, ok := kept[gone.Algorithm]; !gone.ActivatedAt.IsZero() && (!ok || !gone.RevokedAt.Before(r.Compromised[last].RevokedAt)) {
			kept[gone.Algorithm] = i
		}
	}
	oldest := -1
	for i, gone := range r.Compromised {
		last, ok := kept[gone.Algorithm]
		if ok && last == i {
			continue
		}
		if oldest < 0 || gone.RevokedAt.Before(r.Compromised[oldest].RevokedAt) {
			oldest = i
		}
	}
	return oldest
}

// compromise adds a key to those that were revoked.
func (e *edit) compromise(gone Compromised) {
	e.ring.Compromised = append(e.ring.Compromised, gone)
	if len(e.ring.Compromised) > maxCompromised {
		i := e.ring.oldestRevoked()
		e.ring.Compromised = slices.Delete(e.ring.Compromised, i, i+1)
	}
}

// Resume makes a ring that was put back, or made anew, the successor of a past that it does not know: revoked keys
// leave it, and lost published keys become part of its history. Its spares may have signed in the ring that is lost. Errors are
// *Refused, or that of generate.
func (r Ring) Resume(v View, past Past, c Cause, generate Generate) (Change, error) {
	if err := c.validate(); err != nil {
		return Change{}, refuse(BadCommand, "the user or the reason: %s", err)
	}
	if r.Resumed == nil && r.Lacks(past) == "" {
		return Change{Ring: r}, nil
	}
	v.Settings = v.Settings.withDefaults()
	change := Change{Ring: r}
	for _, gone := range past.Revoked {
		if change.Ring.knowsRevoked(gone) {
			continue
		}
		if gone.By == "" {
			gone.Cause = Cause{By: "unknown", Reason: "revoked before the ring was put back"}
		}
		revoked, err := change.Ring.withRevoked(v, gone, generate)
		if err != nil {
			return Change{}, err
		}
		change = Change{Ring: revoked.Ring, Events: append(change.Events, revoked.Events...)}
	}
	e := change.Ring.edit(v)
	e.ring.Resumed, e.changed = nil, true
	e.ring.Revision = max(e.ring.Revision, past.Revision)
	for i := range e.ring.Keys {
		if key := &e.ring.Keys[i]; key.State == Spare && r.index(key.ID) >= 0 {
			key.LastExpiry = v.Settings.spareBound(e.at)
		}
	}
	for _, id := range past.published() {
		if !e.ring.remembers(id) {
			e.record(Removed, Key{ID: id, Algorithm: past.Published[id]}, false, c)
		}
	}
	last := e.change()
	return Change{Ring: last.Ring, Events: append(change.Events, last.Events...), Changed: true}, nil
}

// spareBound is after the expiry of every token that a spare can have signed until a time in a ring that was lost.
func (s Settings) spareBound(until time.Time) time.Time {
	return RoundUp(until.Add(s.expiryBound(s.terms())))
}

// withRevoked is the ring without a key that was revoked before, and with the account of that.
func (r Ring) withRevoked(v View, gone Compromised, generate Generate) (Change, error) {
	gone.RevokedAt = cmp.Or(gone.RevokedAt, r.clock(v))
	i := r.index(gone.ID)
	if i < 0 {
		e := r.edit(v)
		e.compromise(gone)
		e.record(Revoked, Key{ID: gone.ID, Algorithm: gone.Algorithm}, false, gone.Cause)
		return e.change(), nil
	}
	gone.Reason = cmp.Or(gone.Reason, "revoked before the ring was put back")
	if r.Keys[i].State == Spare {
		gone.LastExpiry = cmp.Or(gone.LastExpiry, v.Settings.spareBound(gone.RevokedAt))
	}
	return r.drop(v, gone, false, generate)
}

// Resuming is the consent to go on with a ring that does not know its past.
type Resuming struct {
	// At is when it was given, in UTC.
	At time.Time `json:"at"`
	Cause
}

// resumedFor is how long a consent counts: a backup keeps it, and must not give it again.
const resumedFor = 24 * time.Hour

// Counts reports whether there is a consent that is neither old nor from a time to come.
func (r *Resuming) Counts(now time.Time) bool { return r != nil && now.Sub(r.At).Abs() < resumedFor }
