package keyring

import (
	"context"
	"fmt"
	"maps"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/discovery/publication"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
)

// Outside returns the past of a ring in the KeyRing and the places of the documents. object returns nil before the first
// KeyRing. The documents count beside the KeyRing, which may have been put back together with the ring.
func Outside(issuer identity.Issuer, object func(context.Context) (*v1alpha1.KeyRing, error), places ...publication.Place) func(context.Context) (keys.Past, error) {
	return func(ctx context.Context) (keys.Past, error) {
		ring, err := object(ctx)
		if err != nil {
			return keys.Past{}, fmt.Errorf("read the KeyRing: %w", err)
		}
		var past keys.Past
		if ring != nil {
			past = report.Past(ring.Status)
		}
		for _, place := range places {
			standing, err := place.Standing(ctx, issuer)
			if err != nil {
				return keys.Past{}, err
			}
			beside := keys.Past{Published: standing.Documents.Algorithms()}
			// A key with another ID is of another signer: no ring can have had it, nor remember it.
			maps.DeleteFunc(beside.Published, func(id identity.KeyID, _ identity.Algorithm) bool { return !keys.WellFormed(id) })
			for _, gone := range standing.Revoked {
				beside.Revoked = append(beside.Revoked, keys.Compromised{ID: gone.ID, Algorithm: gone.Algorithm, RevokedAt: gone.At})
			}
			past = past.Join(beside)
		}
		return past, nil
	}
}
