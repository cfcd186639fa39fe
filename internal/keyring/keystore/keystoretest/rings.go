package keystoretest

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Now is when the first ring is made.
func Now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Rings returns a ring, and one that follows from it: its spare ES256 key is another one. They are the same for the whole
// run of a program, as RSA keys are slow to make.
func Rings() (first, next keys.Ring) {
	rings := madeOnce()
	return rings[0], rings[1]
}

var madeOnce = sync.OnceValue(func() [2]keys.Ring {
	first, err := keys.Bootstrap(keys.NewPrivate, Now())
	if err != nil {
		panic(err)
	}
	return [2]keys.Ring{first, WithNewSpare(first)}
})

// WithNewSpare returns the ring with another spare ES256 key instead of the one it has.
func WithNewSpare(ring keys.Ring) keys.Ring {
	private, err := keys.NewPrivate(identity.ES256)
	if err != nil {
		panic(err)
	}
	id, err := identity.KeyIDOf(private.Public())
	if err != nil {
		panic(err)
	}
	spare := slices.IndexFunc(ring.Keys, func(key keys.Key) bool { return key.State == keys.Spare && key.Algorithm == identity.ES256 })
	ring.Keys = slices.Clone(ring.Keys)
	ring.Keys[spare] = keys.Key{ID: id, Algorithm: identity.ES256, State: keys.Spare, Private: private, PublishedAt: Now().Add(time.Hour)}
	return ring
}

// RSAOnce gives the RSA keys of the first ring to every caller, and new keys of other algorithms.
func RSAOnce() keys.Generate {
	first, _ := Rings()
	var rsa []crypto.Signer
	for _, key := range first.Keys {
		if key.Algorithm == identity.RS256 {
			rsa = append(rsa, key.Private)
		}
	}
	var mutex sync.Mutex
	asked := 0
	return func(algorithm identity.Algorithm) (crypto.Signer, error) {
		if algorithm != identity.RS256 {
			return keys.NewPrivate(algorithm)
		}
		mutex.Lock()
		defer mutex.Unlock()
		asked++
		return rsa[asked%len(rsa)], nil
	}
}

// Diff describes how one ring differs from another; it is empty where they are equal. Of private keys it shows a hash.
func Diff(want, got keys.Ring) string {
	return cmp.Diff(want, got, cmp.Transformer("SHA256", func(private crypto.Signer) string {
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%x", sha256.Sum256(der))
	}))
}

func ids(ring keys.Ring) string {
	var all []string
	for _, key := range ring.Keys {
		all = append(all, string(key.ID))
	}
	return strings.Join(all, " ")
}
