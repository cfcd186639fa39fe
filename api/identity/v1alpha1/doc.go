// Package v1alpha1 is version v1alpha1 of the API group identity.credence.dev: KeyRing with the requests to rotate and to
// revoke its keys, ContextKind, ContextDelivery, ContextReview, NodeReview and WorkloadCluster. It holds types, names and nothing that acts, and never a private key.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.credence.identity.v1alpha1
// +groupName=identity.credence.dev
package v1alpha1
