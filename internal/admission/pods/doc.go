// Package pods decides what becomes of a pod whose service account gives it workload identities. In goes the pod with what is
// known of its service account, its identities and its RuntimeClass; out comes a Result: a denial, or a JSON patch (RFC 6902)
// and warnings. The patch only adds: a volume for each identity, mounts, variables, annotations with files, and a scheduling
// gate. It never replaces a list or an object, and never touches what somebody else wrote, so that fields which are not known
// here survive; on a pod that it was applied to, it is empty. The package asks nobody: whoever calls it has the facts.
package pods
