package report

import (
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer/keys"
)

// Past is what a status remembers of the ring.
func Past(status v1alpha1.KeyRingStatus) keys.Past {
	past := keys.Past{Published: map[identity.KeyID]identity.Algorithm{}}
	for _, key := range status.Keys {
		past.Published[identity.KeyID(key.ID)] = identity.Algorithm(key.Algorithm)
	}
	for _, key := range status.Revoked {
		gone := keys.Compromised{
			ID: identity.KeyID(key.ID), Algorithm: identity.Algorithm(key.Algorithm), RevokedAt: key.Time.UTC(),
			Cause: keys.Cause{By: key.By, Reason: key.Reason},
		}
		past.Revoked = append(past.Revoked, gone)
	}
	return past
}
