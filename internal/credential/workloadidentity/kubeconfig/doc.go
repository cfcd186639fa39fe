// Package kubeconfig finds the cluster and the user of a source of credentials. In go the caller's choice (a path, a
// context) and its environment; out comes one server, one user and one namespace: of the kubeconfig files, or of the pod's service
// account. It reads as kubectl does, but only what distinguishes credentials, so that a stored credential is found
// without the libraries of Kubernetes. It refuses a user whose program leads back to this provider, before anything runs. It never
// runs a program, makes no requests, and never reads a token, a password or a private key.
package kubeconfig
