// Package kubeconfig finds the cluster that a source of credentials asks, and as whom. In go what the caller chose (a path, a
// context) and its environment; out comes one server, one user and one namespace: of the kubeconfig files, or of the pod's service
// account. It reads as kubectl does, but only what tells one credential from another, so that a credential that is kept is found
// without the libraries of Kubernetes. It refuses a user whose program leads back to this provider, before anything runs. It never
// runs a program, calls nobody over a network, and never reads a token, a password or a private key.
package kubeconfig
