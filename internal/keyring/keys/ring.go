package keys

import (
	"cmp"
	"crypto"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// State is the use of a key of the ring.
type State string

// The states of a key, in the order of its life. A key is published in each of them; one that was removed or revoked has
// left the ring.
const (
	// Spare keys are published and have not signed in this ring: relying parties know a key before it signs.
	Spare State = "spare"
	// Active keys are published and sign.
	Active State = "active"
	// Retiring keys are published and sign no more: their tokens are still valid.
	Retiring State = "retiring"
)

// MaxPublished is how many keys a ring has at most. Some relying parties read no more than ten (Oracle's API gateway).
const MaxPublished = 8

// MaxPerAlgorithm gives each algorithm its share, so that one cannot keep another from rotating.
const MaxPerAlgorithm = MaxPublished / 2

// Key is one signing key of a ring. However it is printed or logged, it shows everything but its private part.
type Key struct {
	// ID is the kid of every token that the key signs; it is derived from the public key.
	ID identity.KeyID
	// Algorithm is the one algorithm that the key signs with.
	Algorithm identity.Algorithm
	// State is the use of the key.
	State State
	// Private signs. Only the packages issuer and externalsigner/service call its Sign.
	Private crypto.Signer `json:"-"`
	// PublishedAt is since when the key is known to be in the stored ring, in UTC; zero for a spare until the first Step
	// that found it there. It is never before the key could be seen, however long the write that added it took.
	PublishedAt time.Time
	// ActivatedAt is when the key became active, in UTC; zero for a spare.
	ActivatedAt time.Time
	// RetiredAt is when the key ceased to be active, in UTC; zero before.
	RetiredAt time.Time
	// LastExpiry is after the expiry of every token that the key has signed, in UTC. It is set on retiring keys, by the first
	// Step that found the key retired in the stored ring, and on spares that may have signed in a ring that was lost.
	LastExpiry time.Time
	// Terms bound what is signed with the key while it is active.
	Terms Terms
}

// String names the key without its private part.
func (k Key) String() string { return fmt.Sprintf("%s key %s (%s)", k.Algorithm, k.ID, k.State) }

// Format implements fmt.Formatter for every verb, so that %#v shows no private part either.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Ring is the set of keys of one issuer. It is a snapshot: it is replaced whole and never edited.
type Ring struct {
	// Keys are those that are published.
	Keys []Key
	// Compromised are the last thousand keys that were revoked. They are never in Keys.
	Compromised []Compromised
	// Requests are the requested rotations that wait for their spare: at most one for each algorithm.
	Requests []Request
	// History is what happened last, oldest first; the oldest of more than MaxHistory events are dropped.
	History []Event
	// Revision grows with each change, so that of two rings of one issuer the later one is known. Rings of programs that did not
	// count have 0.
	Revision int64
	// Resumed is set where an admin who works on the store alone has approved the use of this ring, though other components may
	// remember more of its past. A component that knows the past resumes the ring then.
	Resumed *Resuming
}

// Algorithms are those of which every ring has keys, in the order in which they are published.
func Algorithms() []identity.Algorithm {
	return []identity.Algorithm{identity.RS256, identity.ES256}
}

// states are those that a key may have, in the order in which keys are published.
func states() []State { return []State{Active, Spare, Retiring} }

// Published returns the public keys that relying parties must know. The order depends only on what the keys are, so
// that all replicas publish the same bytes: by algorithm (RS256 first), active before spare before retiring, then by ID.
func (r Ring) Published() []identity.PublicKey {
	sorted := slices.SortedFunc(slices.Values(r.Keys), func(a, b Key) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Algorithms(), a.Algorithm), slices.Index(Algorithms(), b.Algorithm)),
			cmp.Compare(slices.Index(states(), a.State), slices.Index(states(), b.State)),
			cmp.Compare(a.ID, b.ID),
		)
	})
	published := make([]identity.PublicKey, 0, len(sorted))
	for _, key := range sorted {
		published = append(published, identity.PublicKey{ID: key.ID, Algorithm: key.Algorithm, Key: key.Private.Public()})
	}
	return published
}

// Signer returns the key that signs with an algorithm; false if the ring has none. Whether a replica may sign with the ring
// that it has read is decided by Terms.MaySign of the key.
func (r Ring) Signer(algorithm identity.Algorithm) (Key, bool) {
	for _, key := range r.Keys {
		if key.State == Active && key.Algorithm == algorithm {
			return key, true
		}
	}
	return Key{}, false
}

// successor returns the spare that signs next: the one whose publication was confirmed first. false if no publication
// is confirmed.
func (r Ring) successor(algorithm identity.Algorithm) (Key, bool) {
	var found Key
	for _, key := range r.Keys {
		if key.Algorithm != algorithm || key.State != Spare || key.PublishedAt.IsZero() {
			continue
		}
		older := cmp.Or(key.PublishedAt.Compare(found.PublishedAt), cmp.Compare(key.ID, found.ID)) < 0
		if found.ID == "" || older {
			found = key
		}
	}
	return found, found.ID != ""
}

func (r Ring) index(id identity.KeyID) int {
	return slices.IndexFunc(r.Keys, func(k Key) bool { return k.ID == id })
}

// count counts the keys of an algorithm, in the given states or in all.
func (r Ring) count(algorithm identity.Algorithm, of ...State) int {
	n := 0
	for _, key := range r.Keys {
		if key.Algorithm == algorithm && (len(of) == 0 || slices.Contains(of, key.State)) {
			n++
		}
	}
	return n
}

// latest is the latest time in the history of a key of the ring.
func (r Ring) latest() time.Time {
	var latest time.Time
	for _, key := range r.Keys {
		latest = later(later(latest, key.PublishedAt), later(key.ActivatedAt, key.RetiredAt))
	}
	return latest
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
