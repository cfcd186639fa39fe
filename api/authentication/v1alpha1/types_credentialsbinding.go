package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBinding names the credentials that a consumer uses for a provider: those in a Secret, or a WorkloadIdentity. Its consumers
// name the binding, so that the credentials behind it can be replaced.
type CredentialsBinding struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// provider is the provider that the credentials are for. Required.
	Provider CredentialsProvider `json:"provider"`
	// secretRef names a Secret with static credentials. Exactly one of secretRef and workloadIdentityRef is set; its writer must be allowed
	// to get the Secret.
	// +optional
	SecretRef *CredentialsReference `json:"secretRef,omitempty"`
	// workloadIdentityRef names a WorkloadIdentity for the same provider. Its writer must be allowed to use the identity.
	// +optional
	WorkloadIdentityRef *CredentialsReference `json:"workloadIdentityRef,omitempty"`
	// quotas name the Quotas that bound what the objects use together that name this binding: at most one of each scope. Its writer must be
	// allowed to get them. Immutable.
	// +optional
	// +listType=atomic
	Quotas []CredentialsReference `json:"quotas,omitempty"`
	// status is what the server has found of the credentials.
	// +optional
	Status CredentialsBindingStatus `json:"status,omitempty"`
}

// CredentialsBindingStatus is what the server has found of the credentials of a binding. A reference may be written before its object exists.
type CredentialsBindingStatus struct {
	// observedGeneration is the generation of the binding that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// writer is the user who wrote the reference to the credentials. The server reviews this user's right again for each new uid. Absent in
	// bindings that were written before writers were recorded.
	// +optional
	Writer *CredentialsWriter `json:"writer,omitempty"`
	// credentialsUID is the uid of the WorkloadIdentity or Secret that the binding gives. Empty: none.
	// +optional
	CredentialsUID types.UID `json:"credentialsUID,omitempty"`
	// account holds the fields of the identity's providerConfig that another identity of the binding must have, too.
	// +optional
	// +listType=atomic
	Account []CredentialsAccountField `json:"account,omitempty"`
	// deliveries are the Secrets that name the binding, as agents report them. A report counts for two hours.
	// +optional
	// +listType=map
	// +listMapKey=reporter
	Deliveries []Delivery `json:"deliveries,omitempty"`
	// conditions are Ready: True if the binding gives credentials. A binding to a Secret has it once its data was given. Referred is True
	// while the binding is being deleted and consumers of other namespaces use it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CredentialsWriter is a user.
type CredentialsWriter struct {
	// username is the name of the user.
	Username string `json:"username"`
	// uid is the uid of the user, if it has one.
	// +optional
	UID string `json:"uid,omitempty"`
	// groups are the groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
}

// CredentialsAccountField is a field of a providerConfig.
type CredentialsAccountField struct {
	// path is the path of the field.
	Path string `json:"path"`
	// value is its value, or the part of it that names the account.
	Value string `json:"value"`
}

// CredentialsProvider is a provider of infrastructure.
type CredentialsProvider struct {
	// type names the kind of provider, such as aws, azure, gcp or alicloud: a DNS label, that of the target system of an identity. Required,
	// immutable.
	Type string `json:"type"`
}

// CredentialsReference names an object, in any namespace.
// +structType=atomic
type CredentialsReference struct {
	// name is the name of the object. Required.
	Name string `json:"name"`
	// namespace is the namespace of the object; the server sets it to that of the binding if it is empty.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CredentialsBindingList is a list of CredentialsBinding objects.
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the bindings.
	Items []CredentialsBinding `json:"items"`
}
