package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// Generate makes a new private key for an algorithm.
type Generate func(identity.Algorithm) (crypto.Signer, error)

// rsaBits is the only size generated: every cloud accepts it, and signing with 4096 bits costs several times as much.
const rsaBits = 2048

// NewPrivate is the Generate that everything but tests uses. Randomness is not a parameter: since Go 1.26 the
// crypto packages always draw a key from the system's source and ignore any other reader.
func NewPrivate(algorithm identity.Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case identity.RS256:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	case identity.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		return nil, fmt.Errorf("no key can be generated for algorithm %q, use %q", algorithm, Algorithms())
	}
}

// Bootstrap returns the first ring of an issuer: for each algorithm one active key, and one spare that is published from
// the start. No relying party has other keys from before, so the active ones need no waiting. Times are in whole seconds.
func Bootstrap(generate Generate, now time.Time) (Ring, error) {
	now = now.UTC().Truncate(time.Second)
	ring := Ring{Revision: 1}
	for _, algorithm := range Algorithms() {
		for _, state := range []State{Active, Spare} {
			key, err := newKey(generate, algorithm, state, now)
			if err != nil {
				return Ring{}, fmt.Errorf("generate %s %s key: %w", state, algorithm, err)
			}
			ring.Keys = append(ring.Keys, key)
		}
	}
	if err := ring.Validate(); err != nil {
		return Ring{}, fmt.Errorf("check generated keys: %w", err)
	}
	return ring, nil
}

func newKey(generate Generate, algorithm identity.Algorithm, state State, now time.Time) (Key, error) {
	private, err := generate(algorithm)
	if err != nil {
		return Key{}, err
	}
	id, err := identity.KeyIDOf(private.Public())
	if err != nil {
		return Key{}, err
	}
	key := Key{ID: id, Algorithm: algorithm, State: state, Private: private, PublishedAt: now}
	if state == Active {
		key.ActivatedAt, key.Terms = now, Terms{}.complete()
	}
	return key, nil
}
