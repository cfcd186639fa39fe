package issuer

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/identity"
)

// LifetimeError says that a shorter lifetime was asked for than tokens may have.
type LifetimeError struct {
	Requested, Min time.Duration
}

func (e *LifetimeError) Error() string {
	return fmt.Sprintf("token lifetime %s is too short: it must not be shorter than %s", e.Requested, e.Min)
}

// Prepared are claims that were checked, and the right to have them signed once by the Issuer that checked them. Only
// Prepare makes one that can be signed: a zero value, a copy, and one that was signed already are refused.
type Prepared struct {
	// self is the address of this value, by which a copy is told from the original.
	self   *Prepared
	issuer *Issuer
	// redeemed becomes true before the private key is reached, and stays so whatever the key says.
	redeemed atomic.Bool
	signedBy atomic.Pointer[signer]

	tokenID   string
	subject   identity.Subject
	audiences []string
	issuedAt  time.Time
	expiry    time.Time
	shortened bool
	algorithm identity.Algorithm
	payload   []byte
}

// Prepare checks a request and returns the claims of its token. The errors: *LifetimeError, ErrNoSigningKey if Sign could
// not sign it now, and others that say what the request lacks.
func (i *Issuer) Prepare(request Request) (*Prepared, error) {
	if err := request.check(); err != nil {
		return nil, fmt.Errorf("prepare token: %w", err)
	}
	subject, err := identity.NewSubject(request.Identity.Namespace, request.Identity.Name, request.Identity.UID)
	if err != nil {
		return nil, fmt.Errorf("prepare token: %w", err)
	}
	lifetime, shortened, err := i.config.Lifetimes.Grant(request.Lifetime)
	if err != nil {
		return nil, &LifetimeError{Requested: request.Lifetime, Min: i.config.Lifetimes.Min}
	}
	now := i.config.Clock()
	_, longest, err := i.signer(request.TargetAlgorithm, now)
	if err != nil {
		return nil, err
	}
	// How long a key stays published follows from what the ring says of it, whatever this process was told.
	if lifetime > longest {
		lifetime, shortened = longest, true
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
	}
	p.self = p
	p.payload, err = json.Marshal(i.claims(p, request))
	if err != nil {
		return nil, fmt.Errorf("encode claims: %w", err)
	}
	return p, nil
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
	c.setContext(request.Context)
	return c
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

// Shortened says whether the token lives shorter than was asked for.
func (p *Prepared) Shortened() bool { return p.shortened }

// Algorithm is what the token is signed with.
func (p *Prepared) Algorithm() identity.Algorithm { return p.algorithm }

// KeyID names the key that signed the token; it is empty until Sign has. The key is chosen by Sign, not before: between
// Prepare and Sign the ring may drop a key that must not sign any more.
func (p *Prepared) KeyID() identity.KeyID {
	if by := p.signedBy.Load(); by != nil {
		return by.id
	}
	return ""
}
