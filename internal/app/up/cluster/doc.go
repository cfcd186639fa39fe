// Package cluster prepares a Kubernetes API for Credence's components and proves that they work together. In go an admin's
// kubeconfig and the objects to apply, out come a cluster that serves authentication.gardener.cloud, and one token that was
// issued and verified. It never prints, keeps or returns a token, and deletes nothing but the identity it made for the proof.
package cluster
