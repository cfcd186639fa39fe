package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
