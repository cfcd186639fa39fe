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

// State says what a key of the ring is for.
type State string

// The states of a key. A key is published in both of them: relying parties know a spare before it signs.
const (
	// Spare keys are published and have never signed.
	Spare State = "spare"
	// Active keys are published and sign.
	Active State = "active"
)

// Key is one signing key of a ring. However it is printed or logged, it shows everything but its private part.
type Key struct {
	// ID is the kid of every token that the key signs; it is derived from the public key.
	ID identity.KeyID
	// Algorithm is the one algorithm that the key signs with.
	Algorithm identity.Algorithm
	// State says whether the key signs.
	State State
	// Private signs. Only the package issuer calls its Sign.
	Private crypto.Signer `json:"-"`
	// PublishedAt is when the key entered the ring, in UTC.
	PublishedAt time.Time
	// ActivatedAt is when the key became active, in UTC; zero for a spare.
	ActivatedAt time.Time
}

// String names the key without its private part.
func (k Key) String() string { return fmt.Sprintf("%s key %s (%s)", k.Algorithm, k.ID, k.State) }

// Format implements fmt.Formatter for every verb, so that %#v shows no private part either.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Ring is the set of keys of one issuer. It is a snapshot: it is replaced whole and never edited.
type Ring struct {
	Keys []Key
}

// algorithms are those of which every ring has keys, in the order in which they are published.
func algorithms() []identity.Algorithm {
	return []identity.Algorithm{identity.RS256, identity.ES256}
}

// states are those that a key may have, in the order in which keys are published.
func states() []State { return []State{Active, Spare} }

// Published returns the public keys that relying parties must know. The order depends only on what the keys are, so
// that all replicas publish the same bytes: by algorithm (RS256 first), active before spare, then by ID.
func (r Ring) Published() []identity.PublicKey {
	sorted := slices.SortedFunc(slices.Values(r.Keys), func(a, b Key) int {
		return cmp.Or(
			cmp.Compare(slices.Index(algorithms(), a.Algorithm), slices.Index(algorithms(), b.Algorithm)),
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

// Signer returns the key that signs with an algorithm; false if there is none.
func (r Ring) Signer(algorithm identity.Algorithm) (Key, bool) {
	for _, key := range r.Keys {
		if key.State == Active && key.Algorithm == algorithm {
			return key, true
		}
	}
	return Key{}, false
}
