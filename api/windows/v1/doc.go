// Package v1 is the API group windows.k8s.io as clusters with Windows nodes know it: GMSACredentialSpec, and the annotations by
// which pods named one before they had fields for it. It holds types, names and nothing that acts. A credential spec holds no
// secret: it names the account and the domain that a container runs as, and where the node finds it.
//
// +k8s:deepcopy-gen=package
// +groupName=windows.k8s.io
package v1
