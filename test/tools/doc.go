// Package tools applies identities and bindings with the libraries of other tools, as these call them: the cluster cache, sync and diff of Argo CD
// (gitops-engine), server-side apply of Flux, discovery and backup of Velero, and Helm. Each is run on a cluster without Credence and on a plane, with
// the programs of make build in CREDENCE_BIN; nothing comes out but test failures. It is a module of its own, so that the programs do not depend on
// these tools.
package tools
