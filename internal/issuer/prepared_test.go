package issuer

import (
	"context"
	"crypto"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// countingSigner counts how often a private key is used.
type countingSigner struct {
	crypto.Signer
	count *atomic.Int64
}

func (s countingSigner) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.count.Add(1)
	return s.Signer.Sign(random, digest, opts)
}

func countingRing(count *atomic.Int64) func() keys.Ring {
	counted := slices.Clone(testRing().Keys)
	for i := range counted {
		counted[i].Private = countingSigner{counted[i].Private, count}
	}
	return func() keys.Ring { return keys.Ring{Keys: counted} }
}

// randomRequest is valid about half the time.
func randomRequest(random *mathrand.Rand) Request {
	text := func(valid string, others ...string) string {
		if random.IntN(12) > 0 {
			return valid
		}
		return others[random.IntN(len(others))]
	}
	// RS256 takes ten times as long to sign.
	algorithm := identity.ES256
	if random.IntN(20) == 0 {
		algorithm = identity.RS256
	}
	r := Request{
		Identity: Identity{
			Namespace: text("ns", "", "a:b", "a b"),
			Name:      text("name", "", strings.Repeat("x", 255), "ñ"),
			UID:       text("uid", "", "u:id"),
		},
		TargetAlgorithm: identity.Algorithm(text(string(algorithm), "", "none", "HS256", "EdDSA")),
		Lifetime:        time.Duration(random.Int64N(int64(100*time.Hour))) - 2*time.Hour,
	}
	for range random.IntN(4) {
		r.Audiences = append(r.Audiences, text("audience", "", "\xff", `"`))
	}
	switch random.IntN(4) {
	case 0:
		r.Context = &Context{}
	case 1:
		r.Context = &Context{ServiceAccount: &ServiceAccount{Namespace: text("ns", ""), Name: text("sa", ""), UID: text("uid", "", "\n")}}
	}
	return r
}

// No signature is made but for claims that Prepare returned, and one for each of them at most, for any request.
func TestNothingIsSignedWithoutPrepare(t *testing.T) {
	var signatures atomic.Int64
	config := testConfig()
	config.Ring = readNow(countingRing(&signatures))
	issuer, other := newIssuer(t, config), newIssuer(t, config)
	random := mathrand.New(mathrand.NewPCG(1, 2))
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	var prepared, refused, redeemed int64
	mustRefuse := func(what string, p *Prepared) {
		t.Helper()
		before := signatures.Load()
		if token, err := issuer.Sign(t.Context(), p); err == nil || !token.IsZero() {
			t.Fatalf("%s was signed", what)
		}
		if signatures.Load() != before {
			t.Fatalf("%s reached the private key", what)
		}
	}
	for range 4000 {
		p, err := issuer.Prepare(randomRequest(random))
		if err != nil {
			refused++
			mustRefuse("a refused request", p)
			continue
		}
		prepared++
		mustRefuse("a zero value", &Prepared{})
		mustRefuse("a copy", copyOf(p))
		if _, err := other.Sign(t.Context(), p); err == nil {
			t.Fatal("another issuer signed these claims")
		}
		if _, err := issuer.Sign(ended, p); !errors.Is(err, context.Canceled) {
			t.Fatalf("sign with a context that has ended: %v", err)
		}
		if random.IntN(2) == 0 {
			continue // never redeemed, as with a dry run
		}
		token, err := issuer.Sign(t.Context(), p)
		if err != nil || token.IsZero() {
			t.Fatalf("sign: %v", err)
		}
		redeemed++
		mustRefuse("a signed one", p)
	}
	if got := signatures.Load(); got != redeemed {
		t.Errorf("%d signatures for %d redeemed claims", got, redeemed)
	}
	if refused < 500 || prepared < 500 || redeemed < 200 {
		t.Errorf("%d refused, %d prepared, %d redeemed: the requests are too similar", refused, prepared, redeemed)
	}
}

// copyOf returns a copy of all fields that a caller outside the package could make by dereferencing.
func copyOf(p *Prepared) *Prepared {
	return &Prepared{
		self: p.self, issuer: p.issuer, tokenID: p.tokenID, subject: p.subject, audiences: p.audiences, issuedAt: p.issuedAt,
		expiry: p.expiry, shortened: p.shortened, algorithm: p.algorithm, payload: p.payload,
	}
}

func TestClaimsAreRedeemedOnceUnderConcurrency(t *testing.T) {
	var signatures atomic.Int64
	config := testConfig()
	config.Ring = readNow(countingRing(&signatures))
	issuer := newIssuer(t, config)
	const rounds, callers = 100, 8
	for range rounds {
		p := testkit.Need(issuer.Prepare(testRequest()))(t)
		var tokens atomic.Int64
		start := make(chan struct{})
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				<-start
				token, err := issuer.Sign(t.Context(), p)
				if (err == nil) == token.IsZero() {
					t.Errorf("token %v, error %v, want one of them", !token.IsZero(), err)
				}
				if err == nil {
					tokens.Add(1)
					if p.KeyID() == "" {
						t.Error("no key is reported for a signed token")
					}
				}
			})
		}
		close(start)
		group.Wait()
		if tokens.Load() != 1 {
			t.Fatalf("%d tokens for claims that were prepared once", tokens.Load())
		}
	}
	if got := signatures.Load(); got != rounds {
		t.Errorf("%d signatures for %d claims", got, rounds)
	}
}

func TestNilIsRefused(t *testing.T) {
	if token, err := newIssuer(t, testConfig()).Sign(t.Context(), nil); err == nil || !token.IsZero() {
		t.Error("nil was signed")
	}
}
