package keeper

import corev1 "k8s.io/api/core/v1"

// eventReason is the reason of an Event on a Secret.
type eventReason string

const (
	eventAuthorityMade   eventReason = "AuthorityMade"
	eventBundleChanged   eventReason = "TrustedAuthoritiesChanged"
	eventCertificateMade eventReason = "CertificateMade"
	eventFailed          eventReason = "CertificatesNotKept"
)

func (k *Keeper) event(on *corev1.Secret, kind string, reason eventReason, message string) {
	k.Events.Event(on, kind, string(reason), message)
}
