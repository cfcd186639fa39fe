package keys

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Command is a user's request to change a ring.
type Command struct {
	// Algorithm is that of the keys to rotate; Revoke takes it from the key.
	Algorithm identity.Algorithm
	// Key is the key to revoke. To Rotate and RotateNow it is the active key that the caller has seen: if another one is
	// active by now, the rotation has happened and nothing is done. It may be empty for them.
	Key identity.KeyID
	// AcceptRefusals allows a key to sign that not every relying party can know yet.
	AcceptRefusals bool
	// Cause is the user and the reason; By is always needed, Reason by Revoke.
	Cause
}

// RefusalReason is why a Command was refused.
type RefusalReason string

// The reasons of refusals.
const (
	// BadCommand: the command is not one that could be carried out on any ring.
	BadCommand RefusalReason = "BadCommand"
	// NoSuchKey: the key is not in the ring.
	NoSuchKey RefusalReason = "NoSuchKey"
	// AlreadyDone: another command has done it.
	AlreadyDone RefusalReason = "AlreadyDone"
	// TooYoung: the spare was not published long enough, and refusals are not accepted.
	TooYoung RefusalReason = "TooYoung"
	// UnknownToGates: a gate has not confirmed the spare, and refusals are not accepted.
	UnknownToGates RefusalReason = "UnknownToGates"
	// TooManyKeys: as many keys are published as may be.
	TooManyKeys RefusalReason = "TooManyKeys"
	// Superseded: the stored ring is older than what is known of it, and no command is decided on it.
	Superseded RefusalReason = "RingSuperseded"
)

// Refused is the error of a Command that the ring does not allow. The ring stays what it is.
type Refused struct {
	Reason  RefusalReason
	Message string
	// ReadyAt is when the same command can succeed; zero if that is not known.
	ReadyAt time.Time
}

func (e *Refused) Error() string { return e.Message }

func refuse(reason RefusalReason, format string, args ...any) *Refused {
	return &Refused{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Rotate requests a rotation as soon as the spare may sign: the next Step that may carries it out. Errors are *Refused. If
// the rotation is requested already, the Change is empty.
func (r Ring) Rotate(v View, c Command) (Change, error) {
	v.Settings = v.Settings.withDefaults()
	if _, err := r.checkRotation(c); err != nil {
		return Change{}, err
	}
	if _, waiting := r.request(c.Algorithm); waiting {
		return Change{Ring: r}, nil
	}
	active, signs := r.Signer(c.Algorithm)
	if !signs {
		return Change{}, refuse(AlreadyDone, "no %s key is active, since it was revoked: the spare becomes active as soon as it may", c.Algorithm)
	}
	e := r.edit(v)
	e.ring.Requests = append(e.ring.Requests, Request{Algorithm: c.Algorithm, At: e.at, Cause: c.Cause})
	e.record(Requested, active, false, c.Cause)
	return e.change(), nil
}

// RotateNow lets the spare sign at once. It is refused while the spare could be unknown to a relying party, unless refusals are
// accepted, and at the cap in any case. Errors are *Refused, or that of generate.
func (r Ring) RotateNow(v View, c Command, generate Generate) (Change, error) {
	v.Settings = v.Settings.withDefaults()
	spare, err := r.checkRotation(c)
	if err != nil {
		return Change{}, err
	}
	e := r.edit(v)
	// Removals that are due make space, even before a controller carries them out.
	for _, action := range r.Plan(v).Actions {
		if action.Kind == Remove && action.Algorithm == c.Algorithm && action.due(v.Now) {
			if err := e.act(action, generate); err != nil {
				return Change{}, err
			}
		}
	}
	if free, known := e.ring.freeAt(c.Algorithm, v.Settings); !known || !free.IsZero() {
		refused := refuse(TooManyKeys, "%s", capReached(c.Algorithm, free).Message)
		refused.ReadyAt = free
		return Change{}, refused
	}
	if refused := mayNotSign(spare, v); refused != nil && !c.AcceptRefusals {
		return Change{}, refused
	}
	if err := e.promote(spare.ID, mayNotSign(spare, v) != nil, c.Cause, generate); err != nil {
		return Change{}, err
	}
	return e.change(), nil
}

// Revoke drops a key at once. If it was the active one the spare signs at once; a spare that could be unknown to a relying
// party does so only if refusals are accepted, and else no key signs until it is old enough. Errors are *Refused, or that of
// generate.
func (r Ring) Revoke(v View, c Command, generate Generate) (Change, error) {
	v.Settings = v.Settings.withDefaults()
	if err := c.check(); err != nil {
		return Change{}, err
	}
	if c.Reason == "" {
		return Change{}, refuse(BadCommand, "revoke key %s: a reason is needed", c.Key)
	}
	if r.index(c.Key) < 0 {
		return Change{}, r.noSuchKey(c.Key)
	}
	return r.drop(v, Compromised{ID: c.Key, RevokedAt: r.clock(v), Cause: c.Cause}, c.AcceptRefusals, generate)
}

// drop is Revoke for a key of the ring. It fills in of gone only what is not known.
func (r Ring) drop(v View, gone Compromised, acceptRefusals bool, generate Generate) (Change, error) {
	i := r.index(gone.ID)
	e := r.edit(v)
	key := r.Keys[i]
	e.ring.Keys = slices.Delete(e.ring.Keys, i, i+1)
	gone.Algorithm = key.Algorithm
	gone.ActivatedAt = cmp.Or(gone.ActivatedAt, key.ActivatedAt)
	gone.LastExpiry = cmp.Or(gone.LastExpiry, key.ExpiryBound(v.Settings, gone.RevokedAt))
	e.compromise(gone)
	e.record(Revoked, key, false, gone.Cause)
	if spare, ok := e.ring.oldestSpare(key.Algorithm); ok && key.State == Active {
		refused := mayNotSign(spare, v)
		if refused == nil || acceptRefusals {
			if err := e.promote(spare.ID, refused != nil, gone.Cause, generate); err != nil {
				return Change{}, err
			}
		}
	}
	if err := e.replenish(key.Algorithm, generate); err != nil {
		return Change{}, err
	}
	return e.change(), nil
}

// checkRotation returns the spare that a rotation lets sign.
func (r Ring) checkRotation(c Command) (Key, error) {
	if err := c.check(); err != nil {
		return Key{}, err
	}
	if !slices.Contains(Algorithms(), c.Algorithm) {
		return Key{}, refuse(BadCommand, "rotate: algorithm %.64q is unknown, it must be one of %q", c.Algorithm, Algorithms())
	}
	if active, _ := r.Signer(c.Algorithm); c.Key != "" && c.Key != active.ID {
		return Key{}, refuse(AlreadyDone, "rotate: key %.64s is not the active %s key any more, which is %s", c.Key, c.Algorithm, active.ID)
	}
	spare, ok := r.oldestSpare(c.Algorithm)
	if !ok {
		return Key{}, refuse(NoSuchKey, "rotate: the ring has no spare %s key", c.Algorithm)
	}
	return spare, nil
}

// oldestSpare is the successor, or any spare if no publication is confirmed.
func (r Ring) oldestSpare(algorithm identity.Algorithm) (Key, bool) {
	if spare, ok := r.successor(algorithm); ok {
		return spare, true
	}
	i := slices.IndexFunc(r.Keys, func(k Key) bool { return k.Algorithm == algorithm && k.State == Spare })
	if i < 0 {
		return Key{}, false
	}
	return r.Keys[i], true
}

// mayNotSign returns why a relying party could refuse the tokens of a spare, or nil.
func mayNotSign(spare Key, v View) *Refused {
	ready := spare.ReadyAt(v.Settings)
	if ready.IsZero() {
		return refuse(TooYoung, "the spare %s has only just been added: relying parties that do not know it would refuse its tokens", spare.ID)
	}
	if ready.After(v.Now) {
		refused := refuse(TooYoung, "the spare %s may sign from %s: relying parties that do not know it would refuse its tokens before", spare.ID, ready.Format(time.RFC3339))
		refused.ReadyAt = ready
		return refused
	}
	if names := v.awaits(spare.ID); len(names) > 0 {
		return refuse(UnknownToGates, "the spare %s is not known to %q: they would refuse its tokens", spare.ID, names)
	}
	return nil
}

func (r Ring) noSuchKey(id identity.KeyID) *Refused {
	for _, gone := range r.Compromised {
		if gone.ID == id {
			return refuse(AlreadyDone, "key %s was revoked at %s by %s: %s", id, gone.RevokedAt.Format(time.RFC3339), gone.By, gone.Reason)
		}
	}
	for _, event := range r.History {
		if event.Key == id && event.Kind == Removed {
			return refuse(NoSuchKey, "key %s was removed at %s: %s", id, event.At.Format(time.RFC3339), event.Reason)
		}
	}
	return refuse(NoSuchKey, "key %.64q is not in the ring", id)
}

func (c Command) check() error {
	if err := c.Cause.validate(); err != nil {
		return refuse(BadCommand, "the user or the reason: %s", err)
	}
	return nil
}
