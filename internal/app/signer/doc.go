// Package signer is the program `credence-server signer`: in go flags or a Config, out comes a server of the external signer
// API of Kubernetes on a unix socket, with a ring of keys in a folder that it rotates by itself. It only wires parts
// together; it never needs a Kubernetes API, since one waits for it, and never has the keys of workload identities.
package signer
