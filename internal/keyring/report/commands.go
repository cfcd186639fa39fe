package report

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Next returns the key of an algorithm that signs next, and the time from which it may; nil while that is not known.
func Next(ring keys.Ring, algorithm identity.Algorithm, view keys.View) (id string, at *metav1.Time) {
	for _, key := range ring.Keys {
		if key.Algorithm != algorithm || key.State != keys.Spare {
			continue
		}
		ready := moment(key.ReadyAt(view.Settings))
		if id == "" || at == nil && ready != nil || ready != nil && ready.Before(at) {
			id, at = string(key.ID), ready
		}
	}
	return id, at
}

// Rotation describes the result of a requested rotation, or of one that now has carried out.
func Rotation(before, after keys.Ring, view keys.View, algorithm identity.Algorithm, now bool) v1alpha1.KeyRotationStatus {
	status := v1alpha1.KeyRotationStatus{Outcome: "Requested"}
	active, _ := after.Signer(algorithm)
	status.ActiveKey = string(active.ID)
	if now {
		status.Outcome = "Rotated"
		if i := slices.IndexFunc(before.Keys, func(k keys.Key) bool { return k.ID == active.ID }); i >= 0 {
			status.Refusals = Exposures(before.Keys[i].RefusedFor(view))
		}
	}
	status.NextKey, status.NextAt = Next(after, algorithm, view)
	return status
}

// Revocation describes the result of the revocation of a key.
func Revocation(before, after keys.Ring, view keys.View, revoked identity.KeyID) v1alpha1.KeyRevocationStatus {
	var status v1alpha1.KeyRevocationStatus
	i := slices.IndexFunc(before.Keys, func(k keys.Key) bool { return k.ID == revoked })
	if i < 0 {
		return status
	}
	key := before.Keys[i]
	status.Algorithm = string(key.Algorithm)
	status.LastExpiry = moment(key.ExpiryBound(view.Settings, view.Now))
	status.Accepted = Exposures(key.AcceptedFor(view))
	active, signs := after.Signer(key.Algorithm)
	if !signs {
		status.NextKey, status.NextAt = Next(after, key.Algorithm, view)
		return status
	}
	status.ActiveKey = string(active.ID)
	// Also where the key signed already: tokens of the revoked one are replaced by its tokens, which may be too new for some.
	replaces := status.LastExpiry != nil
	if i := slices.IndexFunc(before.Keys, func(k keys.Key) bool { return k.ID == active.ID && (k.State == keys.Spare || replaces) }); i >= 0 {
		status.Refusals = Exposures(before.Keys[i].RefusedFor(view))
	}
	return status
}
