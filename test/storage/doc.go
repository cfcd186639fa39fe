// Package storage holds the storage of the API server in the host cluster's API to the suite that k8s.io/apiserver ships for
// implementations, against a real kube-apiserver. In go the programs of make build, nothing comes out but test results.
package storage
