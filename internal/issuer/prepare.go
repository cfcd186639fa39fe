package issuer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// LifetimeError reports that the requested lifetime is shorter than tokens may have.
type LifetimeError struct {
	Requested, Min time.Duration
}

func (e *LifetimeError) Error() string {
	return fmt.Sprintf("token lifetime %s is too short: it must not be shorter than %s", e.Requested, e.Min)
}

// Prepared are claims that were checked, and the right to have them signed once by the Issuer that checked them. Only
// Prepare makes one that can be signed: a zero value, a copy, and one that was signed already are refused.
type Prepared struct {
	// self is the address of this value, which distinguishes the original from a copy.
	self   *Prepared
	issuer *Issuer
	// redeemed becomes true before the private key is used, and stays so whatever the key returns.
	redeemed atomic.Bool
	signed   atomic.Pointer[Signed]

	tokenID   string
	subject   identity.Subject
	audiences []string
	issuedAt  time.Time
	expiry    time.Time
	shortened bool
	algorithm identity.Algorithm
	accepted  []identity.Algorithm
	payload   []byte
}

// Prepare checks a request and returns the claims of its token. The errors: *LifetimeError, ErrNoSigningKey if Sign could
// not sign it now, and others that name the fault of the request.
func (i *Issuer) Prepare(request Request) (*Prepared, error) {
	if err := request.check(); err != nil {
		return nil, fmt.Errorf("prepare token: %w", err)
	}
	if i.config.External != nil && len(request.AcceptedAlgorithms) == 0 {
		return nil, errors.New("prepare token: an external signer needs the algorithms that the target system accepts")
	}
	subject, err := identity.NewSubject(request.Identity.Namespace, request.Identity.Name, request.Identity.UID)
	if err != nil {
		return nil, fmt.Errorf("prepare token: %w", err)
	}
	lifetime, shortened, err := i.config.Lifetimes.Grant(request.Lifetime)
	if err != nil {
		return nil, &LifetimeError{Requested: request.Lifetime, Min: i.config.Lifetimes.Min}
	}
	now, longest, err := i.mayPrepare(request.TargetAlgorithm)
	if err != nil {
		return nil, err
	}
	// How long a key stays published follows from the terms in the ring, whatever the settings of this process.
	if lifetime > longest {
		lifetime, shortened = longest, true
	}
	if request.LongestAccepted > 0 && lifetime > request.LongestAccepted {
		lifetime, shortened = request.LongestAccepted.Truncate(time.Second), true
	}
	tokenID, err := newTokenID(i.config.Random)
	if err != nil {
		return nil, err
	}
	issuedAt := now.UTC().Truncate(time.Second)
	p := &Prepared{
		issuer:    i,
		tokenID:   tokenID,
		subject:   subject,
		audiences: slices.Clone(request.Audiences),
		issuedAt:  issuedAt,
		expiry:    issuedAt.Add(lifetime),
		shortened: shortened,
		algorithm: request.TargetAlgorithm,
		accepted:  slices.Clone(request.AcceptedAlgorithms),
	}
	p.self = p
	p.payload, err = i.payload(p, request)
	if err != nil {
		return nil, fmt.Errorf("encode claims: %w", err)
	}
	return p, nil
}

// mayPrepare returns the time, and the longest lifetime of a token that could be signed now.
func (i *Issuer) mayPrepare(algorithm identity.Algorithm) (now time.Time, longest time.Duration, err error) {
	if i.config.External != nil {
		longest, err = i.config.External.MaxLifetime()
		return i.config.Clock(), longest, err
	}
	permit, err := i.permit(algorithm)
	return permit.now, permit.longest, err
}

func (i *Issuer) payload(p *Prepared, request Request) ([]byte, error) {
	c := i.claims(p, request)
	if request.Context != nil && len(request.Context.Objects) > 0 {
		return json.Marshal(c.withObjects(request.Context.Objects))
	}
	return json.Marshal(c)
}

func (i *Issuer) claims(p *Prepared, request Request) claims {
	c := claims{
		Issuer:    i.config.Issuer,
		Subject:   p.subject,
		Audiences: p.audiences,
		IssuedAt:  p.issuedAt.Unix(),
		NotBefore: p.issuedAt.Unix(),
		Expiry:    p.expiry.Unix(),
		ID:        p.tokenID,
		Gardener: gardenerClaims{WorkloadIdentity: objectClaims{
			Name: request.Identity.Name, Namespace: request.Identity.Namespace, UID: request.Identity.UID,
		}},
	}
	if i.config.GardenID != "" {
		c.Gardener.Garden = &gardenClaims{ID: i.config.GardenID}
	}
	c.setContext(request.Cluster, request.Context)
	return c
}

// Claims are those that every token of the request has, as JSON: without times and ID.
func (p *Prepared) Claims() ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.payload, &members); err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	for _, own := range []string{"iat", "nbf", "exp", "jti"} {
		delete(members, own)
	}
	return json.Marshal(members)
}

// JTI is the ID of the token, a random UUID.
func (p *Prepared) JTI() string { return p.tokenID }

// Subject is the sub claim.
func (p *Prepared) Subject() identity.Subject { return p.subject }

// Audiences is the aud claim.
func (p *Prepared) Audiences() []string { return slices.Clone(p.audiences) }

// IssuedAt is the iat and nbf claim: UTC, in whole seconds.
func (p *Prepared) IssuedAt() time.Time { return p.issuedAt }

// Expiry is the exp claim: UTC, in whole seconds.
func (p *Prepared) Expiry() time.Time { return p.expiry }

// Lifetime is how long the token is valid, in whole seconds.
func (p *Prepared) Lifetime() time.Duration { return p.expiry.Sub(p.issuedAt) }

// Shortened reports whether the token lives shorter than requested.
func (p *Prepared) Shortened() bool { return p.shortened }

// Algorithm is that of the token's signature, or before Sign, the requested one.
func (p *Prepared) Algorithm() identity.Algorithm {
	if signed := p.signed.Load(); signed != nil {
		return signed.Algorithm
	}
	return p.algorithm
}

// KeyID names the key that signed the token; it is empty until Sign has. The key is chosen by Sign, not before: between
// Prepare and Sign the ring may drop a key that must not sign any more.
func (p *Prepared) KeyID() identity.KeyID {
	if signed := p.signed.Load(); signed != nil {
		return signed.KeyID
	}
	return ""
}
