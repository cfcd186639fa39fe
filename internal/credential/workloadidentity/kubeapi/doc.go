// Package kubeapi connects a source of credentials to the cluster of the caller's kubeconfig. In go the result of package
// kubeconfig and the client's request; out come tokens of WorkloadIdentities and requests for certificates, and errors with
// advice, of the classes of package credential. A program that the kubeconfig's user names gets a variable in its environment by
// which this one recognizes itself. It retries nothing, stores nothing, never connects without TLS, and never prints a secret.
package kubeapi
