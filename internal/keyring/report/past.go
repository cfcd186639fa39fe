package report

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Past is what a status remembers of the ring.
func Past(status v1alpha1.KeyRingStatus) keys.Past {
	past := keys.Past{Published: map[identity.KeyID]identity.Algorithm{}, Revision: status.Revision}
	for _, key := range status.Keys {
		past.Published[identity.KeyID(key.ID)] = identity.Algorithm(key.Algorithm)
	}
	for _, key := range status.Revoked {
		gone := keys.Compromised{
			ID: identity.KeyID(key.ID), Algorithm: identity.Algorithm(key.Algorithm), RevokedAt: key.Time.UTC(),
			Cause: keys.Cause{By: key.By, Reason: key.Reason},
		}
		if key.LastExpiry != nil {
			gone.LastExpiry = key.LastExpiry.UTC()
		}
		past.Revoked = append(past.Revoked, gone)
	}
	return past
}

// Remember adds to a status the ring's past that the status lacks. A published key whose state is not
// known counts as retiring, and a revoked key is not among the published ones.
func Remember(status *v1alpha1.KeyRingStatus, past keys.Past) {
	status.Revision = max(status.Revision, past.Revision)
	for _, gone := range past.Revoked {
		if !slices.ContainsFunc(status.Revoked, func(r v1alpha1.RevokedKey) bool { return r.ID == string(gone.ID) }) {
			status.Revoked = append(status.Revoked, revoked(gone))
		}
		status.Keys = slices.DeleteFunc(status.Keys, func(k v1alpha1.KeyStatus) bool { return k.ID == string(gone.ID) })
	}
	for _, id := range slices.Sorted(maps.Keys(past.Published)) {
		known := slices.ContainsFunc(status.Keys, func(k v1alpha1.KeyStatus) bool { return k.ID == string(id) }) ||
			slices.ContainsFunc(status.Revoked, func(r v1alpha1.RevokedKey) bool { return r.ID == string(id) })
		if !known {
			status.Keys = append(status.Keys, v1alpha1.KeyStatus{ID: string(id), Algorithm: string(past.Published[id]), State: string(keys.Retiring)})
		}
	}
}

func revoked(gone keys.Compromised) v1alpha1.RevokedKey {
	return v1alpha1.RevokedKey{
		ID: string(gone.ID), Algorithm: string(gone.Algorithm), Time: metav1.NewTime(gone.RevokedAt),
		LastExpiry: moment(gone.LastExpiry), By: gone.By, Reason: gone.Reason,
	}
}
