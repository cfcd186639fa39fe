// Package pods decides about a pod whose service account gives it workload identities. In goes the pod with the state
// of its service account, its identities and its RuntimeClass; out comes a Result: a denial, or a JSON patch (RFC 6902)
// and warnings. The patch only adds: a volume for each identity, mounts, variables, annotations with files, and a scheduling
// gate. It never replaces a list or an object, and never changes fields of other writers, so that unknown fields
// survive; on a pod that it was applied to, it is empty. The package makes no requests: the caller passes in the state.
package pods
