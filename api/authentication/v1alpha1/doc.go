// Package v1alpha1 is version v1alpha1 of the API group authentication.gardener.cloud: WorkloadIdentity, TokenRequest and
// CredentialsBinding (GEP-26, "API Changes", "Shoot API Related Changes"). It holds types, names and nothing that acts.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=cloud.gardener.authentication.v1alpha1
// +groupName=authentication.gardener.cloud
package v1alpha1
