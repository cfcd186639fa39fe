package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// KeyRotation requests that another key signs. It is created on keyrings/<name>/rotation and never stored.
type KeyRotation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name given must be that of the KeyRing.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec describes the requested rotation.
	// +optional
	Spec KeyRotationSpec `json:"spec,omitempty"`
	// status is the server's answer.
	// +optional
	Status KeyRotationStatus `json:"status,omitempty"`
}

// KeyRotationSpec defines which keys are rotated, and when.
type KeyRotationSpec struct {
	// algorithm is that of the keys, RS256 or ES256. Required.
	Algorithm string `json:"algorithm"`
	// activeKey is the ID of the key that the caller has seen signing: if another one signs by now, nothing is done (409).
	// +optional
	ActiveKey string `json:"activeKey,omitempty"`
	// now lets the spare sign at once. It is refused (409) while the spare could be unknown to a relying party, unless
	// acceptRefusals is set. Without now, the spare signs as soon as every relying party can know it.
	// +optional
	Now bool `json:"now,omitempty"`
	// acceptRefusals lets a key sign that relying parties may not know yet, and so may refuse.
	// +optional
	AcceptRefusals bool `json:"acceptRefusals,omitempty"`
	// reason is why, at most 256 bytes. It is recorded.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// KeyRotationStatus is the server's answer.
type KeyRotationStatus struct {
	// outcome is Rotated or Requested.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// activeKey is the ID of the key that signs now.
	// +optional
	ActiveKey string `json:"activeKey,omitempty"`
	// nextKey is the ID of the key that signs next.
	// +optional
	NextKey string `json:"nextKey,omitempty"`
	// nextAt is when the next key may sign.
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`
	// refusals are how long relying parties may refuse valid tokens of the key that signs now; only for now.
	// +optional
	// +listType=atomic
	Refusals []Exposure `json:"refusals,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// KeyRevocation drops a key at once. It is created on keyrings/<name>/revocation and never stored.
type KeyRevocation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name given must be that of the KeyRing.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the key and the reason.
	Spec KeyRevocationSpec `json:"spec"`
	// status is the server's answer.
	// +optional
	Status KeyRevocationStatus `json:"status,omitempty"`
}

// KeyRevocationSpec names the key to revoke, and the reason.
type KeyRevocationSpec struct {
	// key is the ID of the key. Required.
	Key string `json:"key"`
	// reason is why, at most 256 bytes. It is recorded. Required.
	Reason string `json:"reason"`
	// acceptRefusals lets the spare sign although relying parties may not know it yet. Without it, requests for tokens are
	// answered 503 until they can.
	// +optional
	AcceptRefusals bool `json:"acceptRefusals,omitempty"`
}

// KeyRevocationStatus is the server's answer.
type KeyRevocationStatus struct {
	// algorithm is that of the revoked key: the tokens of identities whose target system takes it must be renewed.
	// +optional
	Algorithm string `json:"algorithm,omitempty"`
	// activeKey is the ID of the key that signs now; empty while none does.
	// +optional
	ActiveKey string `json:"activeKey,omitempty"`
	// nextKey is the ID of the key that signs next, where none signs now.
	// +optional
	NextKey string `json:"nextKey,omitempty"`
	// nextAt is when the next key may sign.
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`
	// lastExpiry is not before the expiry of any token that the issuer has signed with the revoked key.
	// +optional
	LastExpiry *metav1.Time `json:"lastExpiry,omitempty"`
	// accepted is how long relying parties may accept tokens of the revoked key.
	// +optional
	// +listType=atomic
	Accepted []Exposure `json:"accepted,omitempty"`
	// refusals are how long relying parties may refuse valid tokens of the key that signs now.
	// +optional
	// +listType=atomic
	Refusals []Exposure `json:"refusals,omitempty"`
}

// Exposure is how long relying parties of one model act on keys that are not those of the ring.
type Exposure struct {
	// model is M0 to M5.
	Model string `json:"model"`
	// parties describes how these relying parties learn of keys.
	Parties string `json:"parties"`
	// duration is how long it takes them at most.
	Duration metav1.Duration `json:"duration"`
	// unbounded is set where no time helps: an admin has to act on the relying party.
	// +optional
	Unbounded bool `json:"unbounded,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// KeyInitialization starts an issuer from the keys that are stored, or from new ones where none are, although more is known of
// its past. It is created on keyrings/<name>/initialization and never stored.
type KeyInitialization struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be empty; a name given must be that of the KeyRing.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec states that the loss is accepted, and why.
	Spec KeyInitializationSpec `json:"spec"`
	// status is the server's answer.
	// +optional
	Status KeyInitializationStatus `json:"status,omitempty"`
}

// KeyInitializationSpec states that a loss is accepted, and why.
type KeyInitializationSpec struct {
	// acceptLoss has to be true: tokens of keys that are lost are refused, and what the storage has forgotten stays forgotten.
	AcceptLoss bool `json:"acceptLoss"`
	// reason is why, at most 256 bytes. It is recorded. Required.
	Reason string `json:"reason"`
}

// KeyInitializationStatus is the server's answer.
type KeyInitializationStatus struct {
	// made is set if no keys were stored, and new ones were made.
	// +optional
	Made bool `json:"made,omitempty"`
	// lost are the IDs of published keys that are not stored any more: their tokens are refused.
	// +optional
	// +listType=atomic
	Lost []string `json:"lost,omitempty"`
	// revoked are the IDs of keys that were stored, but had been revoked: they stay so.
	// +optional
	// +listType=atomic
	Revoked []string `json:"revoked,omitempty"`
	// unsigned are the algorithms of which no key signs now, since its key had been revoked and the spare is too young.
	// +optional
	// +listType=atomic
	Unsigned []UnsignedAlgorithm `json:"unsigned,omitempty"`
}

// UnsignedAlgorithm is an algorithm of which no key signs.
type UnsignedAlgorithm struct {
	// algorithm is RS256 or ES256.
	Algorithm string `json:"algorithm"`
	// nextKey is the ID of the key that signs next.
	// +optional
	NextKey string `json:"nextKey,omitempty"`
	// nextAt is when the next key may sign.
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`
}
