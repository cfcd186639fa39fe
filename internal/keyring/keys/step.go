package keys

import (
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Change is a ring that replaces another.
type Change struct {
	Ring Ring
	// Events are those that the ring's history has gained.
	Events []Event
	// Changed reports whether the ring has changed. A mere confirmation changes the ring and is not an event.
	Changed bool
}

// Step does everything that is due. The ring must be one that was loaded from its store, and View.Now read after that: that
// a key is in it shows that it is published, or has retired, since then at the latest. So the times that keys are kept by
// never depend on how long a write took, or on whether the writer lived to see it done. The result is to be saved only over
// the ring that was loaded. The error is that of generate.
func (r Ring) Step(v View, generate Generate) (Change, error) {
	v.Settings = v.Settings.withDefaults()
	plan := r.Plan(v)
	e := r.edit(v)
	for _, kind := range actionKinds() {
		for _, action := range plan.Actions {
			if action.Kind != kind || !action.due(v.Now) {
				continue
			}
			if err := e.act(action, generate); err != nil {
				return Change{}, err
			}
		}
	}
	return e.change(), nil
}

// edit is a ring that is being made from another one.
type edit struct {
	ring     Ring
	settings Settings
	// at is written as the time of all that happens.
	at      time.Time
	events  []Event
	changed bool
}

func (r Ring) edit(v View) *edit {
	return &edit{
		ring: Ring{
			Keys: slices.Clone(r.Keys), Compromised: slices.Clone(r.Compromised),
			Requests: slices.Clone(r.Requests), History: slices.Clone(r.History), Revision: r.Revision, Resumed: r.Resumed,
		},
		settings: v.Settings,
		at:       r.clock(v),
	}
}

// clock is the time to record: now, or the latest time of the ring if that is later. A clock that was set
// back thus makes no key look older than it is. A time beyond what any clock should have shown is ignored.
func (r Ring) clock(v View) time.Time {
	now := later(v.Now, r.latest())
	if r.clockBehind(v) {
		now = v.Now.Add(2 * v.Settings.ClockSkew)
	}
	return RoundUp(now)
}

// RoundUp gives whole seconds that are never earlier, in UTC.
func RoundUp(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return whole
}

func (e *edit) change() Change {
	e.ring.History = append(e.ring.History, e.events...)
	// No request is nil, as it is when a stored ring is read.
	if len(e.ring.Requests) == 0 {
		e.ring.Requests = nil
	}
	if surplus := len(e.ring.History) - MaxHistory; surplus > 0 {
		e.ring.History = slices.Clone(e.ring.History[surplus:])
	}
	changed := e.changed || len(e.events) > 0
	if changed {
		e.ring.Revision++
	}
	return Change{Ring: e.ring, Events: e.events, Changed: changed}
}

func (e *edit) act(action Action, generate Generate) error {
	i := e.ring.index(action.Key)
	key := &e.ring.Keys[i]
	switch action.Kind {
	case Confirm:
		e.confirm(key)
	case Extend:
		key.Terms = key.Terms.raised(e.settings.terms())
		e.changed = true
	case Remove:
		e.record(Removed, *key, false, Cause{Controller, "every token that it signed has expired"})
		e.ring.Keys = slices.Delete(e.ring.Keys, i, i+1)
	case Activate:
		return e.promote(action.Key, false, Cause{Controller, "the spare has been published long enough"}, generate)
	case Rotate:
		cause := Cause{Controller, "the rotation period is over"}
		if request, ok := e.ring.request(action.Algorithm); ok {
			cause = request.Cause
		}
		return e.promote(action.Key, false, cause, generate)
	}
	return nil
}

func (e *edit) confirm(key *Key) {
	e.changed = true
	if key.State == Spare {
		key.PublishedAt = e.at
		return
	}
	key.LastExpiry = key.ExpiryBound(e.settings, e.at)
}

// promote lets a spare sign, retires the key that did, and adds the next spare.
func (e *edit) promote(id identity.KeyID, acceptRefusals bool, cause Cause, generate Generate) error {
	algorithm := e.ring.Keys[e.ring.index(id)].Algorithm
	if active, ok := e.ring.Signer(algorithm); ok {
		key := &e.ring.Keys[e.ring.index(active.ID)]
		key.State, key.RetiredAt = Retiring, later(e.at, active.ActivatedAt)
		e.record(Retired, *key, false, cause)
	}
	key := &e.ring.Keys[e.ring.index(id)]
	if key.PublishedAt.IsZero() || key.PublishedAt.After(e.at) {
		key.PublishedAt = e.at
	}
	key.State, key.ActivatedAt, key.LastExpiry, key.Terms = Active, e.at, time.Time{}, e.settings.terms()
	e.record(Activated, *key, acceptRefusals, cause)
	e.ring.Requests = slices.DeleteFunc(e.ring.Requests, func(r Request) bool { return r.Algorithm == algorithm })
	return e.replenish(algorithm, generate)
}

// replenish adds the spares that are missing: one is always there, and where no key signs there is one more, which is the
// spare when the other has become active.
func (e *edit) replenish(algorithm identity.Algorithm, generate Generate) error {
	wanted := 2
	if _, signs := e.ring.Signer(algorithm); signs {
		wanted = 1
	}
	for e.ring.count(algorithm, Spare) < wanted && e.ring.count(algorithm) < MaxPerAlgorithm {
		key, err := newKey(generate, algorithm, Spare, time.Time{})
		if err != nil {
			return fmt.Errorf("generate spare %s key: %w", algorithm, err)
		}
		if e.ring.remembers(key.ID) {
			return fmt.Errorf("generate spare %s key: %s was in the ring before, and no key is used twice", algorithm, key.ID)
		}
		e.ring.Keys = append(e.ring.Keys, key)
		e.record(Published, key, false, Cause{Controller, "there is always a spare"})
	}
	return nil
}

// remembers reports whether a key is, or is known to have been, in the ring.
func (r Ring) remembers(id identity.KeyID) bool {
	return r.index(id) >= 0 ||
		slices.ContainsFunc(r.Compromised, func(c Compromised) bool { return c.ID == id }) ||
		slices.ContainsFunc(r.History, func(e Event) bool { return e.Key == id })
}

func (e *edit) record(kind EventKind, key Key, acceptRefusals bool, cause Cause) {
	e.events = append(e.events, Event{
		At: e.at, Kind: kind, Algorithm: key.Algorithm, Key: key.ID, AcceptRefusals: acceptRefusals, Cause: cause,
	})
}
