// Package v1alpha1 is version v1alpha1 of the API group accounts.credence.dev: what a service account stands for (ServiceAccountProfile,
// SecurityContextTemplate), and what a namespace has from the beginning (NamespaceTemplate). They are custom resources. The package holds types,
// names and nothing that acts.
//
// +k8s:deepcopy-gen=package
// +groupName=accounts.credence.dev
package v1alpha1
