package issuer

import (
	"cmp"
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// ErrNoSigningKey: the ring has no key that may sign now. It passes with time, or with the next good ring.
var ErrNoSigningKey = errors.New("no key may sign now")

// signer is a key of the ring that was checked, with what of a token depends on the key alone.
type signer struct {
	id        identity.KeyID
	algorithm identity.Algorithm
	private   crypto.Signer
	// header is the encoded header and the dot behind it.
	header string
	// signatureSize is in bytes, before encoding.
	signatureSize int
}

// maxLifetime is the longest lifetime of a token that an active key may sign.
func maxLifetime(key keys.Key) time.Duration {
	return cmp.Or(key.Terms.MaxLifetime, keys.DefaultMaxLifetime)
}

// signers are those of the last ring that was seen. The map is replaced whole, never edited.
type signers map[identity.KeyID]*signer

// permit is what signs at a time, and for how long a token it may.
type permit struct {
	signer  *signer
	now     time.Time
	longest time.Duration
}

// permit returns what signs with an algorithm now, or ErrNoSigningKey.
func (i *Issuer) permit(algorithm identity.Algorithm) (permit, error) {
	ring, readAt := i.config.Ring()
	// Read after the ring: another one may come at any moment, and a ring is never from the future.
	now := i.config.Clock()
	key, ok := ring.Signer(algorithm)
	if !ok && len(ring.Keys) == 0 && i.config.Unusable != nil {
		if err := i.config.Unusable(); err != nil {
			return permit{}, fmt.Errorf("%w: %w", ErrNoSigningKey, err)
		}
	}
	if !ok {
		return permit{}, fmt.Errorf("%w: the ring has no active %s key", ErrNoSigningKey, algorithm)
	}
	if !key.Terms.MaySign(readAt, now) {
		return permit{}, fmt.Errorf("%w: the ring of keys was read at %s, and is too old to sign with at %s: the key may have been revoked since",
			ErrNoSigningKey, readAt.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	ready, err := i.ready(key, ring)
	return permit{signer: ready, now: now, longest: maxLifetime(key)}, err
}

// ready returns the checked signer of a key.
func (i *Issuer) ready(key keys.Key, ring keys.Ring) (*signer, error) {
	known := *i.signers.Load()
	if ready := known[key.ID]; ready != nil && ready.algorithm == key.Algorithm {
		return ready, nil
	}
	fresh, err := newSigner(key)
	if err != nil {
		return nil, fmt.Errorf("%w: key %s: %w", ErrNoSigningKey, key.ID, err)
	}
	i.signers.Store(known.with(fresh, ring))
	return fresh, nil
}

// with adds a signer, and drops those of keys that have left the ring.
func (s signers) with(fresh *signer, ring keys.Ring) *signers {
	next := signers{fresh.id: fresh}
	for _, key := range ring.Keys {
		if ready := s[key.ID]; ready != nil && key.ID != fresh.id {
			next[key.ID] = ready
		}
	}
	return &next
}

// newSigner checks that a key is as the ring describes it, since a token with another kid or algorithm would be refused by
// every relying party.
func newSigner(key keys.Key) (*signer, error) {
	if key.Private == nil {
		return nil, errors.New("it has no private key")
	}
	public, err := identity.NewPublicKey(key.Private.Public())
	if err != nil {
		return nil, err
	}
	if public.ID != key.ID || public.Algorithm != key.Algorithm {
		return nil, fmt.Errorf("its private key is the %s key %s", public.Algorithm, public.ID)
	}
	// Neither value has a character that JSON would escape: the ID was just derived, the algorithm is one of two.
	header := `{"alg":"` + string(public.Algorithm) + `","kid":"` + string(public.ID) + `","typ":"JWT"}`
	size := rawSignatureSize
	if key, isRSA := public.Key.(*rsa.PublicKey); isRSA {
		size = key.Size()
	}
	return &signer{
		id:            public.ID,
		algorithm:     public.Algorithm,
		private:       key.Private,
		header:        base64.RawURLEncoding.EncodeToString([]byte(header)) + ".",
		signatureSize: size,
	}, nil
}
