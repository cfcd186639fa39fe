package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadIdentities is the name of the one KeyRing: that of the issuer of workload identities. The server makes it.
const WorkloadIdentities = "workload-identities"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// KeyRing shows the signing keys of one issuer, and what becomes of them. It never holds a private key.
type KeyRing struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec lists the relying parties that must know a key before it signs.
	// +optional
	Spec KeyRingSpec `json:"spec,omitempty"`
	// status is what the keys are, and what happens to them next.
	// +optional
	Status KeyRingStatus `json:"status,omitempty"`
}

// KeyRingSpec lists the relying parties that must know a key before it signs.
type KeyRingSpec struct {
	// relyingParties are those that were given a copy of the public keys, and do not fetch them: no key signs before each
	// of them knows it. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=name
	RelyingParties []RelyingParty `json:"relyingParties,omitempty"`
}

// RelyingParty holds a copy of the public keys.
type RelyingParty struct {
	// name distinguishes it from the others: a DNS label. Required.
	Name string `json:"name"`
	// knownKeys are the IDs of the keys that it has been given: an admin who uploads a copy adds them. At most 50.
	// +optional
	// +listType=set
	KnownKeys []string `json:"knownKeys,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// KeyRingList is a list of KeyRing objects.
type KeyRingList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the key rings.
	Items []KeyRing `json:"items"`
}
