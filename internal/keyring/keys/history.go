package keys

import (
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// EventKind is what happened to a key.
type EventKind string

// The kinds of events.
const (
	// Published: a new spare was added.
	Published EventKind = "published"
	// Requested: a later rotation was requested.
	Requested EventKind = "requested"
	// Activated: the key signs from now on.
	Activated EventKind = "activated"
	// Retired: the key signs no more.
	Retired EventKind = "retired"
	// Removed: the key is published no more; all that it signed has expired.
	Removed EventKind = "removed"
	// Revoked: the key was dropped, though what it signed may not have expired.
	Revoked EventKind = "revoked"
)

func eventKinds() []EventKind {
	return []EventKind{Published, Requested, Activated, Retired, Removed, Revoked}
}

// MaxHistory is how many events a ring remembers.
const MaxHistory = 128

// maxCompromised is far more than most rings see in their life, and keeps ring.json well under the megabyte that a Secret holds. After
// as many revocations the oldest is forgotten.
const maxCompromised = 1000

// The longest Cause.By and Cause.Reason, in bytes.
const (
	maxBy     = 256
	maxReason = 256
)

// Cause is the user who changed a ring, and the reason.
type Cause struct {
	// By names a user, or a part of Credence.
	By string `json:"by"`
	// Reason is a text for people.
	Reason string `json:"reason,omitzero"`
}

// Controller is the By of changes that were due. Callers that record a user of that name must write it differently.
const Controller = "controller"

// Event is one thing that happened to one key.
type Event struct {
	// At is the time of the decision, in UTC.
	At        time.Time          `json:"at"`
	Kind      EventKind          `json:"kind"`
	Algorithm identity.Algorithm `json:"algorithm"`
	Key       identity.KeyID     `json:"kid"`
	// AcceptRefusals is set if a user chose to activate the key before every relying party could know it.
	AcceptRefusals bool `json:"acceptRefusals,omitzero"`
	Cause
}

// Compromised is a key that was revoked.
type Compromised struct {
	ID        identity.KeyID     `json:"kid"`
	Algorithm identity.Algorithm `json:"algorithm"`
	// RevokedAt is the time of the revocation, in UTC.
	RevokedAt time.Time `json:"revokedAt"`
	// ActivatedAt is since when the key signed, in UTC; zero if it never did in this ring.
	ActivatedAt time.Time `json:"activatedAt,omitzero"`
	// LastExpiry is after the expiry of every token that Credence has signed with the key, in UTC; zero if it never
	// signed. A thief of the key is not bound by it.
	LastExpiry time.Time `json:"lastExpiry,omitzero"`
	Cause
}

// Request is a requested rotation. It is carried out by the first Step that may.
type Request struct {
	// Algorithm is that of the key.
	Algorithm identity.Algorithm `json:"algorithm"`
	// At is the time of the request, in UTC.
	At time.Time `json:"at"`
	Cause
}
