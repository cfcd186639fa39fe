package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentity is an identity that workloads present to systems outside the cluster as a short-lived OIDC token.
type WorkloadIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. Namespace, name and uid are part of the identity's subject.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec defines for which relying parties the identity's tokens are.
	Spec WorkloadIdentitySpec `json:"spec"`
	// status is set by the server; what a client sends here is ignored.
	// +optional
	Status WorkloadIdentityStatus `json:"status,omitempty"`
}

// WorkloadIdentitySpec defines for which relying parties the identity's tokens are.
type WorkloadIdentitySpec struct {
	// audiences become the aud claim of every token: 1 to 20 of them, each 1 to 600 characters long, no two the same.
	// Required.
	// +listType=atomic
	Audiences []string `json:"audiences"`
	// targetSystem is the system that the tokens are presented to. Required.
	TargetSystem TargetSystem `json:"targetSystem"`
}

// TargetSystem is a system that accepts tokens of the identity.
type TargetSystem struct {
	// type names the kind of system, such as aws, azure, gcp, alicloud or kubernetes: a DNS label. It decides the
	// signature algorithm of the tokens. Required, immutable.
	Type string `json:"type"`
	// providerConfig is what clients of the target system need to know besides the token: an object with apiVersion and
	// kind, at most 64 KiB. Optional.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
}

// WorkloadIdentityStatus is what a relying party needs in its configuration to trust the identity, which never changes, and how
// its tokens are delivered.
type WorkloadIdentityStatus struct {
	// sub is the sub claim of every token: gardener.cloud:workloadidentity:<namespace>:<name>:<uid>, at most 255 ASCII
	// characters.
	// +optional
	Sub string `json:"sub,omitempty"`
	// issuer is the iss claim of every token: the https URL whose discovery documents carry the public keys.
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// conditions are Ready, Delivered, and Referred while a deletion waits.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// deliveries are the last reports of agents that keep Secrets with tokens of the identity, at most 16.
	// +optional
	// +listType=map
	// +listMapKey=reporter
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WorkloadIdentityList is a list of WorkloadIdentity objects.
type WorkloadIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the identities.
	Items []WorkloadIdentity `json:"items"`
}
