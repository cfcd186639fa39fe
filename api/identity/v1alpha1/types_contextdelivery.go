package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InNoWorkloadCluster is part of the warning beside the empty list of ContextDeliveries that a user of no WorkloadCluster gets. An agent
// keeps what it has delivered when it reads it.
const InNoWorkloadCluster = "is in no WorkloadCluster"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ContextDelivery is a Secret with tokens that a context object needs in the workload clusters that it is on, by the deliver of its
// ContextKind. It is not stored: the server finds out what is to be delivered, and has for each user of a WorkloadCluster what is for that
// cluster. Its name is a digest of the Secret and of the uid of the object.
type ContextDelivery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. There is a resourceVersion of one process of the server: another one answers 410 to it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the Secret.
	Spec ContextDeliverySpec `json:"spec"`
}

// ContextDeliverySpec is a Secret that is to be delivered.
type ContextDeliverySpec struct {
	// secret is where it is delivered in the workload cluster. Both of its members are empty if that is not known: then problem has the
	// cause, and the object may have any of the Secrets that it had before.
	Secret DeliveredSecret `json:"secret"`
	// workloadIdentity is the identity whose tokens are delivered, as it is now. Absent if it is not known, or if the binding refers to a
	// Secret, whose data is delivered then.
	// +optional
	WorkloadIdentity *NamespacedReference `json:"workloadIdentity,omitempty"`
	// credentialsBinding is the binding by which the object refers to the identity, or to a Secret. Absent if it refers to an identity directly.
	// +optional
	CredentialsBinding *NamespacedReference `json:"credentialsBinding,omitempty"`
	// contextObject is the object on whose behalf tokens are requested.
	ContextObject DeliveryContext `json:"contextObject"`
	// provider is spec.targetSystem.type of the identity, or provider.type of a binding that refers to a Secret.
	// +optional
	Provider string `json:"provider,omitempty"`
	// config is the content of the Secret's key config: the providerConfig of the identity in YAML. Empty if it has none.
	// +optional
	Config string `json:"config,omitempty"`
	// renewal changes to another value that is not empty each time the object's annotation gardener.cloud/operation requests new tokens.
	// +optional
	Renewal string `json:"renewal,omitempty"`
	// problem is why nothing can be delivered now: then there is no config, a Secret that exists stays as it is, and none is made.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// DeliveredSecret names a Secret of the workload cluster.
type DeliveredSecret struct {
	// namespace is that of the Secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is that of the Secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// NamespacedReference names an object of the identity cluster.
type NamespacedReference struct {
	// namespace is that of the object.
	Namespace string `json:"namespace"`
	// name is that of the object.
	Name string `json:"name"`
}

// DeliveryContext names a context object, as a request for a token does.
type DeliveryContext struct {
	// apiVersion is the group and version of the object.
	APIVersion string `json:"apiVersion"`
	// kind is that of the object.
	Kind string `json:"kind"`
	// namespace is that of the object, empty for one without.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is that of the object.
	Name string `json:"name"`
	// uid is that of the object.
	UID types.UID `json:"uid"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ContextDeliveryList is a list of ContextDelivery objects.
type ContextDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the deliveries.
	Items []ContextDelivery `json:"items"`
}
