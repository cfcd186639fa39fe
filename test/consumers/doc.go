// Package consumers runs software that the documents name as readers of tokens, by its own packages: the provider of external-dns for Route 53, the
// DNS-01 solver of cert-manager for Route 53, and a receiver of Alertmanager. Velero's plugin for AWS is a program, in CREDENCE_BIN. Each gets what a pod is given, against a stand-in of the cloud that verifies
// tokens through discovery, and goes on across a renewal of the token and a rotation of the key. It is a module of its own, so that the
// programs do not depend on this software.
package consumers
