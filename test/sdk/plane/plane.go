// Package plane is what of Credence makes and publishes tokens, in one process: the ring of keys, the issuer, and the handler
// of the discovery documents, all of them the real ones. In goes the claims of a token, out comes the token; the documents are
// served over TLS by its callers. It stores nothing, and checks no right to a token.
package plane

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Plane is one issuer with its keys. It is not safe for concurrent use, but for its documents.
type Plane struct {
	issuer    identity.Issuer
	ring      keys.Ring
	documents *discovery.Handler
}

// New returns a plane with new keys, whose documents are published.
func New(issuerURL string) (*Plane, error) {
	parsed, err := identity.ParseIssuer(issuerURL)
	if err != nil {
		return nil, err
	}
	ring, err := keys.Bootstrap(keys.NewPrivate, time.Now())
	if err != nil {
		return nil, err
	}
	plane := &Plane{issuer: parsed, ring: ring, documents: discovery.NewHandler(discovery.Settings{Issuer: parsed})}
	return plane, plane.publish()
}

// Documents serves the discovery document and the key set, at the paths of the issuer's URL.
func (p *Plane) Documents() http.Handler { return p.documents }

// Issuer is the iss claim.
func (p *Plane) Issuer() string { return string(p.issuer) }

// SigningKey is the kid of what is signed now with an algorithm.
func (p *Plane) SigningKey(algorithm identity.Algorithm) identity.KeyID {
	key, _ := p.ring.Signer(algorithm)
	return key.ID
}

// Rotate lets the spare of an algorithm sign, publishes the next spare, and keeps the key that has signed published.
func (p *Plane) Rotate(algorithm identity.Algorithm) error {
	settings, err := keys.Settings{}.Complete()
	if err != nil {
		return err
	}
	command := keys.Command{Algorithm: algorithm, AcceptRefusals: true, Cause: keys.Cause{By: "test", Reason: "rotation"}}
	change, err := p.ring.RotateNow(keys.View{Settings: settings, Now: time.Now()}, command, keys.NewPrivate)
	if err != nil {
		return fmt.Errorf("rotate the %s key: %w", algorithm, err)
	}
	p.ring = change.Ring
	return p.publish()
}

func (p *Plane) publish() error {
	documents, err := discovery.New(p.issuer, p.ring.Published())
	if err != nil {
		return err
	}
	return p.documents.Publish(documents)
}

// Issued is a token, and what is in it.
type Issued struct {
	Token   identity.Token
	ID      string
	KeyID   identity.KeyID
	Subject identity.Subject
}

// Issue signs a token as it would have been signed at a time.
func (p *Plane) Issue(request issuer.Request, at time.Time) (Issued, error) {
	signer, err := issuer.New(issuer.Config{
		Issuer: p.issuer,
		Ring:   func() (keys.Ring, time.Time) { return p.ring, at },
		Clock:  func() time.Time { return at },
		Random: rand.Reader,
	})
	if err != nil {
		return Issued{}, err
	}
	prepared, err := signer.Prepare(request)
	if err != nil {
		return Issued{}, err
	}
	token, err := signer.Sign(context.Background(), prepared)
	if err != nil {
		return Issued{}, err
	}
	return Issued{Token: token, ID: prepared.JTI(), KeyID: prepared.KeyID(), Subject: prepared.Subject()}, nil
}
