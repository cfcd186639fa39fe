package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionExceeded of a Quota is True while its objects use more than it allows. ConditionReady is False while it is not known how much they use.
const ConditionExceeded = "Exceeded"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Quota is what context objects may use together, and how long each of them may live: those whose CredentialsBindings list it.
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec has the limits.
	Spec QuotaSpec `json:"spec"`
	// status is what the objects use. The server sets it. Gardener's Quota has none.
	// +optional
	Status QuotaStatus `json:"status,omitzero"`
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

// QuotaStatus is what the objects of a Quota use, as of a moment ago. It decides about no write: the server's own ledger does.
type QuotaStatus struct {
	// observedGeneration is the generation of the Quota that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objects is how many objects count, whether they are stored or reserved for.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// used is how much the stored objects use, for each name in metrics. Of a Quota for projects it is what the namespace uses that uses most.
	// +optional
	Used map[string]resource.Quantity `json:"used,omitempty"`
	// reserved is how much more they use if all writes are stored that were let through.
	// +optional
	Reserved map[string]resource.Quantity `json:"reserved,omitempty"`
	// conditions are Ready and Exceeded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
