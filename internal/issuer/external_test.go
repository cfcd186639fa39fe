package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

// plugin is an external signer that records its requests.
type plugin struct {
	longest  time.Duration
	err      error
	asked    int
	accepted []identity.Algorithm
}

func (p *plugin) MaxLifetime() (time.Duration, error) { return p.longest, p.err }

func (p *plugin) SignClaims(_ context.Context, claims []byte, accepted []identity.Algorithm) (Signed, error) {
	p.asked++
	p.accepted = accepted
	return Signed{Token: identity.NewToken("signed " + string(claims)), KeyID: "hsm-1", Algorithm: identity.RS256}, p.err
}

func TestExternalSigner(t *testing.T) {
	signer := &plugin{longest: 30 * time.Minute}
	config := testConfig()
	config.Ring, config.External = nil, signer
	issuer := newIssuer(t, config)
	request := testRequest()
	if _, err := issuer.Prepare(request); err == nil {
		t.Error("prepared for an external signer without the algorithms that the target system accepts")
	}
	request.AcceptedAlgorithms = []identity.Algorithm{identity.ES256, identity.RS256}
	prepared, token := mustIssue(t, issuer, request)
	if prepared.Lifetime() != 30*time.Minute || !prepared.Shortened() {
		t.Errorf("the token lives %s, the signer allows 30m", prepared.Lifetime())
	}
	if prepared.KeyID() != "hsm-1" || prepared.Algorithm() != identity.RS256 || !slices.Equal(signer.accepted, request.AcceptedAlgorithms) {
		t.Errorf("signed by %s with %s, of %v accepted", prepared.KeyID(), prepared.Algorithm(), signer.accepted)
	}
	if got := token.Reveal(); got != "signed "+string(prepared.payload) {
		t.Errorf("the signer was given other claims: %s", got)
	}
	if _, err := issuer.Sign(t.Context(), prepared); err == nil || signer.asked != 1 {
		t.Errorf("signed twice: %v, called %d times", err, signer.asked)
	}
	waiting := testkit.Need(issuer.Prepare(request))(t)
	signer.longest = 10 * time.Minute
	if _, err := issuer.Sign(t.Context(), waiting); !errors.Is(err, ErrNoSigningKey) || signer.asked != 1 {
		t.Errorf("30 minutes, though the signer allows 10 by now: %v, called %d times", err, signer.asked)
	}
	signer.err = fmt.Errorf("%w: no answer on the socket", ErrNoSigningKey)
	if _, err := issuer.Prepare(request); !errors.Is(err, ErrNoSigningKey) {
		t.Errorf("prepared while the signer is away: %v", err)
	}
}

func TestAnIssuerHasOneSourceOfSignatures(t *testing.T) {
	config := testConfig()
	config.External = &plugin{}
	if _, err := New(config); err == nil {
		t.Error("an issuer with a ring and an external signer")
	}
}
