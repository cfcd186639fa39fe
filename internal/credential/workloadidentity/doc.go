// Package workloadidentity is the source of tokens of WorkloadIdentities. In go the name of one, how long the token is to be valid
// and on whose behalf, and the cluster of the caller's kubeconfig; out comes the token that this cluster issues, with the
// cluster's expiry. It has no state, never prompts the user, and never reads the token itself. It imports no
// libraries of Kubernetes, so that a stored token is served without them: package kubeapi connects to the cluster.
package workloadidentity
