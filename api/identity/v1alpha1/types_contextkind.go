package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of ContextResource.Scope.
const (
	// ScopeNamespaced is the scope of objects that have a namespace.
	ScopeNamespaced = "Namespaced"
	// ScopeCluster is the scope of objects that have none.
	ScopeCluster = "Cluster"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ContextKind makes the objects of a resource contexts of tokens: what a token for such an object claims, and which identities the object
// uses. Its name is RESOURCE.GROUP.
type ContextKind struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is about the objects. Required.
	Spec ContextKindSpec `json:"spec"`
}

// ContextKindSpec is about the objects of a resource. Its expressions are in CEL, of at most 4096 characters each.
type ContextKindSpec struct {
	// object is the resource. It cannot be changed. Required.
	Object ContextResource `json:"object"`
	// claim is the member of gardener.cloud in a token that names the object, such as shoot: a letter in lower case, then letters and
	// digits, at most 63. Required.
	Claim string `json:"claim"`
	// clusters is an expression whose value is the list of the names of the WorkloadClusters that an object is on: more than one while it
	// moves. Their agents may have tokens for the object. Its variable is object. Without it only persons have tokens for such objects.
	// +optional
	Clusters string `json:"clusters,omitempty"`
	// references are what of an object names the identities that it uses. At least one, unless a related object lends, and at
	// most 20.
	// +optional
	// +listType=map
	// +listMapKey=name
	References []ContextReference `json:"references,omitempty"`
	// related are other objects that follow from the object, and are claimed beside it. At most 5.
	// +optional
	// +listType=map
	// +listMapKey=claim
	Related []RelatedObject `json:"related,omitempty"`
	// usage is an expression whose value is a map of what an object uses, for Quotas: names, such as cpu, and quantities, strings such as 500m or
	// whole numbers. Its variable is object. Without it, and beside it, an object counts as one of objects.
	// +optional
	Usage string `json:"usage,omitempty"`
	// expires is an expression whose value is the time at which an object states that it ends, in RFC 3339, or an empty text. Its variable is
	// object. With it, an object must state one where a Quota limits lifetimes.
	// +optional
	Expires string `json:"expires,omitempty"`
}

// ContextResource names a resource of the API of the cluster.
type ContextResource struct {
	// group is the API group of the resource, not of Credence. Required, but for Kubernetes' own group without a name.
	// +optional
	Group string `json:"group,omitempty"`
	// version is that in which objects are read, and named in token requests. Required.
	Version string `json:"version"`
	// resource is the name of the resource in URLs, such as shoots. Required.
	Resource string `json:"resource"`
	// kind is that of the objects, such as Shoot. Required.
	Kind string `json:"kind"`
	// scope is Namespaced (the default) or Cluster.
	// +optional
	Scope string `json:"scope,omitempty"`
}

// ContextReference is one way in which objects refer to identities.
type ContextReference struct {
	// name distinguishes it from the others: a DNS label. Required.
	Name string `json:"name"`
	// workloadIdentities is an expression whose value is the list of the identities that an object uses: names in the namespace of the
	// object, or of an object without namespace, NAMESPACE/NAME. Its variable is object. Exactly one of workloadIdentities and
	// credentialsBindings is set.
	// +optional
	WorkloadIdentities string `json:"workloadIdentities,omitempty"`
	// credentialsBindings is an expression whose value is the list of the CredentialsBindings that an object uses, named in the same way.
	// +optional
	CredentialsBindings string `json:"credentialsBindings,omitempty"`
	// deliver has the agents of the clusters that an object is on make Secrets with the tokens. Without it Secrets are made by others.
	// +optional
	Deliver *ContextDeliver `json:"deliver,omitempty"`
}

// ContextDeliver names the Secrets in which the tokens of a reference are delivered: one for each identity or binding that it yields.
type ContextDeliver struct {
	// namespace is an expression whose value is the namespace of the Secrets in the workload cluster. Its variable is object. Required.
	Namespace string `json:"namespace"`
	// secretName is an expression whose value is the name of the Secret of one identity or binding. Its variables are object and reference:
	// the name of the identity or binding, or if there are references, the entry of those in the same place. Required.
	SecretName string `json:"secretName"`
	// references is an expression whose value is a list of strings, as long as that of the reference and in the same order, such as types of
	// providers. Its variable is object. Without it, names of Secrets follow from those of identities or bindings.
	// +optional
	References string `json:"references,omitempty"`
}

// RelatedObject is an object of the same API group and version that follows from the context object: the one whose key is equal.
type RelatedObject struct {
	// claim is the member of gardener.cloud in a token that names the related object, such as project. Required.
	Claim string `json:"claim"`
	// resource is the name of its resource in URLs, such as projects. Required.
	Resource string `json:"resource"`
	// key is an expression whose value is the key of a candidate, a string; an empty one is the key of nothing. Its variable is candidate.
	// Required.
	Key string `json:"key"`
	// of is an expression whose value is the key that the related object has. Its variable is object. Required.
	Of string `json:"of"`
	// lends is whether the object uses what the related object uses by a ContextKind of its own, too, as a BackupEntry does what its
	// BackupBucket does.
	// +optional
	Lends bool `json:"lends,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ContextKindList is a list of ContextKind objects.
type ContextKindList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the kinds.
	Items []ContextKind `json:"items"`
}
