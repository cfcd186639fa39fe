// Package minors lists which features of Credence are missing or different on each minor of Kubernetes 1, and which fields of manifests it refuses. It
// makes no requests.
package minors
