package keys

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// View is what a decision on a ring depends on besides the ring.
type View struct {
	// Settings set when keys change; they must come from Settings.Complete.
	Settings Settings
	// Documents are the published documents, read after the ring: a key counts as published from the first
	// time that it was found in them. nil if they are not watched; then the ring alone counts.
	Documents *Gate
	// Gates must all know a key before it signs.
	Gates []Gate
	// Now is the time, read after the ring was.
	Now time.Time
}

// Gate is a party that does not learn of new keys by the passing of time: a public endpoint that is watched, or a relying
// party that was given a copy of the keys.
type Gate struct {
	Name string
	// Knows are the keys that were confirmed at the gate.
	Knows []identity.KeyID
	// Unread is set if the gate could not be read. It may know any key then, and is waited for as if it had no keys.
	Unread bool
}

// Plan has the next changes of a ring.
type Plan struct {
	// Actions are those that are due or will be, the earliest first.
	Actions []Action
	// NextChange is when the published documents change next by the passing of time; zero if nothing is known. A time that
	// has passed stands for a change that can come at any moment: it is overdue, or awaits a gate.
	NextChange time.Time
	// MaxAge is how long relying parties may keep the documents from now on: until NextChange, and never longer than
	// Settings.MaxAge. Once that has passed it is Staleness, as the documents may be that late anyway.
	MaxAge time.Duration
	// Conditions are the faults of the ring.
	Conditions []Condition
}

// ActionKind is a change of a key.
type ActionKind string

// The kinds of actions, in the order in which one Step takes those that are due.
const (
	// Confirm notes that a key has been found published, or retired, in the stored ring.
	Confirm ActionKind = "confirm"
	// Extend raises the terms of an active key to the settings.
	Extend ActionKind = "extend"
	// Remove ends the publication of a retiring key.
	Remove ActionKind = "remove"
	// Activate lets a spare sign where no key does.
	Activate ActionKind = "activate"
	// Rotate lets a spare sign instead of the active key.
	Rotate ActionKind = "rotate"
)

func actionKinds() []ActionKind { return []ActionKind{Confirm, Extend, Remove, Activate, Rotate} }

// Action is one thing to do.
type Action struct {
	Kind      ActionKind
	Algorithm identity.Algorithm
	// Key is the key that changes; for Activate and Rotate the one that signs afterwards.
	Key identity.KeyID
	// At is when it may be done.
	At time.Time
	// Awaits names the gates that do not know the key yet: the action waits for all of them.
	Awaits []string
}

func (a Action) due(now time.Time) bool { return !a.At.After(now) && len(a.Awaits) == 0 }

// changesDocuments reports whether relying parties see the action.
func (a Action) changesDocuments() bool { return a.Kind != Confirm && a.Kind != Extend }

// ConditionType is a fault of a ring.
type ConditionType string

// The types of conditions.
const (
	// NoSigningKey: no key of the algorithm signs, since its key was revoked and no spare has been published long enough.
	NoSigningKey ConditionType = "NoSigningKey"
	// CapReached: a rotation is due, but as many keys are published as may be.
	CapReached ConditionType = "CapReached"
	// DocumentsBehind: a spare was made, and is not in the published documents though they have had time to follow.
	DocumentsBehind ConditionType = "DocumentsBehind"
	// AwaitingGates: a rotation is due, but a gate has not confirmed the spare.
	AwaitingGates ConditionType = "AwaitingGates"
	// RevokedKeyPublished: the published documents still have a key that was revoked.
	RevokedKeyPublished ConditionType = "RevokedKeyPublished"
	// DocumentsUnread: the published documents could not be looked at, so they may have a key that was revoked.
	DocumentsUnread ConditionType = "DocumentsUnread"
	// ClockBehind: times in the ring lie further in the future than clocks may be wrong. Nothing is done automatically.
	ClockBehind ConditionType = "ClockBehind"
)

// ConditionTypes are all of them.
func ConditionTypes() []ConditionType {
	return []ConditionType{NoSigningKey, CapReached, DocumentsBehind, AwaitingGates, RevokedKeyPublished, DocumentsUnread, ClockBehind}
}

// Condition is something that is wrong with a ring.
type Condition struct {
	Type ConditionType
	// Algorithm is empty where all are concerned.
	Algorithm identity.Algorithm
	// Message describes the fault and its consequences.
	Message string
}

// Plan returns the changes of a ring, with their times.
func (r Ring) Plan(v View) Plan {
	v.Settings = v.Settings.withDefaults()
	var plan Plan
	behind := r.clockBehind(v)
	if behind {
		plan.Conditions = append(plan.Conditions, Condition{Type: ClockBehind, Message: fmt.Sprintf(
			"the ring has a change at %s, but the clock of the controller is at %s: no key rotates until that is past; set the clock, or revoke the keys of the future",
			r.latest().Format(time.RFC3339), v.Now.UTC().Format(time.RFC3339))})
	}
	for _, algorithm := range Algorithms() {
		actions, conditions := r.planOf(algorithm, v)
		if !behind {
			plan.Actions = append(plan.Actions, actions...)
		}
		plan.Conditions = append(plan.Conditions, conditions...)
	}
	plan.Conditions = append(plan.Conditions, r.exposed(v)...)
	slices.SortStableFunc(plan.Actions, func(a, b Action) int { return a.At.Compare(b.At) })
	for _, action := range plan.Actions {
		if action.changesDocuments() {
			plan.NextChange = action.At
			break
		}
	}
	plan.MaxAge = maxAge(plan.NextChange, v)
	return plan
}

func maxAge(nextChange time.Time, v View) time.Duration {
	left := nextChange.Sub(v.Now)
	switch {
	case nextChange.IsZero():
		return v.Settings.MaxAge
	case left <= 0:
		left = v.Settings.Staleness
	}
	return min(left.Truncate(time.Second), v.Settings.MaxAge)
}

// Due reports whether Step would change the ring at now.
func (p Plan) Due(now time.Time) bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { return a.due(now) })
}

// clockBehind reports whether the ring has a time so far in the future that one of the clocks was, or is, more wrong
// than it may be. Which clock it was cannot be known.
func (r Ring) clockBehind(v View) bool { return r.latest().After(v.Now.Add(2 * v.Settings.ClockSkew)) }

// planOf plans for the keys of one algorithm; no other algorithm has a part in it.
func (r Ring) planOf(algorithm identity.Algorithm, v View) (actions []Action, conditions []Condition) {
	add := func(kind ActionKind, key Key, at time.Time) {
		actions = append(actions, Action{Kind: kind, Algorithm: algorithm, Key: key.ID, At: at.UTC()})
	}
	for _, key := range r.Keys {
		switch {
		case key.Algorithm != algorithm:
		case key.State == Spare && key.PublishedAt.IsZero():
			if v.Documents == nil || slices.Contains(v.Documents.Knows, key.ID) {
				add(Confirm, key, v.Now)
			} else if made, ok := r.madeAt(key.ID); !ok || v.Now.After(made.Add(v.Settings.Staleness)) {
				conditions = append(conditions, documentsBehind(key, *v.Documents))
			}
		case key.State == Retiring && key.LastExpiry.IsZero():
			add(Confirm, key, v.Now)
		case key.State == Retiring:
			add(Remove, key, key.RemovableAt(v.Settings))
		case key.State == Active && key.Terms.raised(v.Settings.terms()) != key.Terms.complete():
			add(Extend, key, v.Now)
		}
	}
	active, signs := r.Signer(algorithm)
	spare, ready := r.successor(algorithm)
	if !signs {
		conditions = append(conditions, noSigningKey(algorithm, spare, v))
	}
	if !ready {
		return actions, conditions
	}
	action := Action{Kind: Activate, Algorithm: algorithm, Key: spare.ID, At: spare.ReadyAt(v.Settings), Awaits: v.awaits(spare.ID)}
	if signs {
		action.Kind = Rotate
		wanted := later(r.wantedAt(active, v.Settings), action.At)
		free, known := r.freeAt(algorithm, v.Settings)
		action.At = later(wanted, free)
		if overdue := !wanted.After(v.Now); overdue && (!known || free.After(v.Now)) {
			conditions = append(conditions, capReached(algorithm, free))
			if !known {
				return actions, conditions
			}
		}
	}
	if len(action.Awaits) > 0 && !action.At.After(v.Now) {
		conditions = append(conditions, awaiting(action))
	}
	action.At = action.At.UTC()
	return append(actions, action), conditions
}

// ReadyAt is when every relying party accepts the tokens of a spare; zero while its publication is not confirmed.
func (k Key) ReadyAt(s Settings) time.Time {
	if k.PublishedAt.IsZero() {
		return time.Time{}
	}
	return k.PublishedAt.Add(s.withDefaults().Wait())
}

// RemovableAt is when a retiring key is removed; zero while the expiry of its last token is not known, and for other keys.
func (k Key) RemovableAt(s Settings) time.Time {
	if k.State != Retiring || k.LastExpiry.IsZero() {
		return time.Time{}
	}
	s = s.withDefaults()
	return k.LastExpiry.Add(s.Leeway + s.ClockSkew)
}

// ExpiryBound is after the expiry of every token that the key has signed until now: LastExpiry where it is known. Zero if
// the key has never signed.
func (k Key) ExpiryBound(s Settings, now time.Time) time.Time {
	switch {
	case k.ActivatedAt.IsZero() || !k.LastExpiry.IsZero():
		return k.LastExpiry
	default:
		return RoundUp(later(now, later(k.ActivatedAt, k.RetiredAt)).Add(s.withDefaults().expiryBound(k.Terms)))
	}
}

// wantedAt is when a rotation away from the active key is due: at once, whatever the clocks read, if a user requested
// it.
func (r Ring) wantedAt(active Key, s Settings) time.Time {
	if _, ok := r.request(active.Algorithm); ok {
		return time.Time{}
	}
	return active.ActivatedAt.Add(s.RotationPeriod)
}

func (r Ring) request(algorithm identity.Algorithm) (Request, bool) {
	for _, request := range r.Requests {
		if request.Algorithm == algorithm {
			return request, true
		}
	}
	return Request{}, false
}

// freeAt is when one more key of an algorithm may be published; the zero time is at once. It is unknown while no
// retiring key of a full ring is confirmed.
func (r Ring) freeAt(algorithm identity.Algorithm, s Settings) (at time.Time, known bool) {
	// A rotation adds a spare, unless there is another one.
	if r.count(algorithm) < MaxPerAlgorithm || r.count(algorithm, Spare) > 1 {
		return time.Time{}, true
	}
	for _, key := range r.Keys {
		if key.Algorithm != algorithm || key.State != Retiring || key.LastExpiry.IsZero() {
			continue
		}
		if removable := key.RemovableAt(s); !known || removable.Before(at) {
			at, known = removable, true
		}
	}
	return at, known
}

// madeAt is when a key was added to the ring; false if the history does not reach back to it.
func (r Ring) madeAt(id identity.KeyID) (time.Time, bool) {
	for _, event := range r.History {
		if event.Key == id && event.Kind == Published {
			return event.At, true
		}
	}
	return time.Time{}, false
}

// awaits names the gates that have not confirmed a key, in alphabetical order.
func (v View) awaits(id identity.KeyID) []string {
	gates := v.Gates
	if v.Documents != nil {
		gates = append(slices.Clone(gates), *v.Documents)
	}
	var names []string
	for _, gate := range gates {
		if !slices.Contains(gate.Knows, id) {
			names = append(names, gate.Name)
		}
	}
	slices.Sort(names)
	return names
}

func noSigningKey(algorithm identity.Algorithm, spare Key, v View) Condition {
	message := "no token is signed: the key was revoked, and the spare has not been found published yet"
	if spare.ID != "" {
		message = fmt.Sprintf("no token is signed: the key was revoked, and the spare %s may sign from %s", spare.ID, spare.ReadyAt(v.Settings).Format(time.RFC3339))
	}
	return Condition{Type: NoSigningKey, Algorithm: algorithm, Message: message}
}

func capReached(algorithm identity.Algorithm, free time.Time) Condition {
	message := fmt.Sprintf("rotation is due, but %d %s keys are published and no more may be", MaxPerAlgorithm, algorithm)
	if !free.IsZero() {
		message += fmt.Sprintf(": it waits until the first of them is removed at %s", free.UTC().Format(time.RFC3339))
	}
	return Condition{Type: CapReached, Algorithm: algorithm, Message: message}
}

func documentsBehind(spare Key, documents Gate) Condition {
	return Condition{Type: DocumentsBehind, Algorithm: spare.Algorithm, Message: fmt.Sprintf(
		"the spare %s is not in the documents of %s: the time until it may sign has not begun", spare.ID, documents.Name)}
}

// exposed reports revoked keys that relying parties may still be shown.
func (r Ring) exposed(v View) []Condition {
	if v.Documents == nil {
		return nil
	}
	if v.Documents.Unread {
		return []Condition{{Type: DocumentsUnread, Message: fmt.Sprintf(
			"the documents of %s could not be read: whether they have a revoked key is not known", v.Documents.Name)}}
	}
	var all []Condition
	for _, gone := range r.Compromised {
		if slices.Contains(v.Documents.Knows, gone.ID) {
			all = append(all, Condition{Type: RevokedKeyPublished, Algorithm: gone.Algorithm, Message: fmt.Sprintf(
				"key %s was revoked at %s and is still in the documents of %s: relying parties accept its tokens", gone.ID, gone.RevokedAt.Format(time.RFC3339), v.Documents.Name)})
		}
	}
	return all
}

func awaiting(action Action) Condition {
	return Condition{Type: AwaitingGates, Algorithm: action.Algorithm, Message: fmt.Sprintf(
		"the spare %s is due to sign, but is not known to: %s", action.Key, strings.Join(action.Awaits, ", "))}
}
