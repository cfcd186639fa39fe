// Package workloadidentity is the source of tokens of WorkloadIdentities. In go the name of one, how long the token is to be valid
// and on whose behalf, and the cluster that the caller's kubeconfig leads to; out comes the token that this cluster issues, with the
// expiry that the cluster says. It has no state, asks nobody in person, and never reads the token itself. It holds nothing of the
// libraries of Kubernetes, so that a token that is kept is served without them: kubeapi is the way to the cluster.
package workloadidentity
