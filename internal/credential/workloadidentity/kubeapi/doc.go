// Package kubeapi is the way of a source of credentials to the cluster that the caller's kubeconfig leads to. In go what package
// kubeconfig has found and the client's ask; out come tokens of WorkloadIdentities and requests for certificates, and errors that say
// what to do, of the classes of package credential. A program that the kubeconfig's user names gets a variable in its environment by
// which this one knows itself again. It retries nothing, keeps nothing, never talks without TLS, and never prints a secret.
package kubeapi
