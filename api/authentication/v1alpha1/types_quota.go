package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Quota is what context objects may use together, and how long each of them may live: those whose CredentialsBindings list it.
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec has the limits.
	Spec QuotaSpec `json:"spec"`
}

// QuotaSpec has the limits of a Quota.
type QuotaSpec struct {
	// scope is which objects are added up. Required, immutable.
	Scope QuotaScope `json:"scope"`
	// clusterLifetimeDays is how many days after its creation an object may end, 1 to 36500. Without it that is not limited.
	// +optional
	ClusterLifetimeDays *int32 `json:"clusterLifetimeDays,omitempty"`
	// metrics is how much the objects may use together, by the name of what is counted: objects, and what usage of their ContextKind returns. At
	// most 20.
	// +optional
	Metrics map[string]resource.Quantity `json:"metrics,omitempty"`
}

// QuotaScope names a kind. That of credentials (v1 Secret, or WorkloadIdentity or CredentialsBinding of this version) adds up all objects whose
// bindings list the Quota; core.gardener.cloud/v1beta1 Project adds up those of each namespace.
type QuotaScope struct {
	// apiVersion is the group and version of the kind. Required.
	APIVersion string `json:"apiVersion"`
	// kind is Project, Secret, WorkloadIdentity or CredentialsBinding. Required.
	Kind string `json:"kind"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QuotaList is a list of Quota objects.
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the quotas.
	Items []Quota `json:"items"`
}
