// Package minors knows what Credence has on each minor of Kubernetes 1: which features are missing or different, and which fields of manifests a
// cluster refuses. In goes a cluster's answer at /version; nothing here talks to a cluster.
package minors
