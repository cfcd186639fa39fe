package comparison

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

// Prober returns the keys that the public URL of an issuer really shows, so that a key can be kept from signing until then.
// It sees what one relying party would see from this place at this time; other edges of a CDN may be older.
type Prober struct {
	// Issuer is the expected issuer of the documents.
	Issuer identity.Issuer
	// URL is where they are looked for, https without a trailing slash; empty: the URL of the issuer.
	URL string
	// Client fetches them. nil: a client that trusts the authorities of this machine.
	Client *http.Client
}

// Shown returns the keys that are shown, under the kid that each is shown with. Documents that relying parties would not
// take, or those of another issuer, are an error (*discovery.Refusal), as are documents that cannot be fetched
// (*FetchError).
func (p *Prober) Shown(ctx context.Context) ([]identity.PublicKey, error) {
	location := cmp.Or(p.URL, string(p.Issuer))
	served, err := Fetch(ctx, p.Client, location)
	if err != nil {
		return nil, err
	}
	documents, err := discovery.Parse(p.Issuer, served.Configuration.Body, served.JWKS.Body)
	if err != nil {
		return nil, fmt.Errorf("use what %s serves: %w", location, err)
	}
	return documents.PublicKeys(), nil
}

// Probe returns the key IDs that are shown with the key that they name (identity.KeyIDOf). A kid with another key is not
// known. The errors are those of Shown; on an error nothing is known.
func (p *Prober) Probe(ctx context.Context) ([]identity.KeyID, error) {
	shown, err := p.Shown(ctx)
	if err != nil {
		return nil, err
	}
	var known []identity.KeyID
	for _, key := range shown {
		if id, err := identity.KeyIDOf(key.Key); err == nil && id == key.ID {
			known = append(known, key.ID)
		}
	}
	return known, nil
}
