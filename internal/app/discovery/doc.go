// Package discovery is the program `credence-discovery`: in go flags or a Config, out comes a TLS server of the
// public documents of one issuer, with a second one for health and metrics. It only wires parts together; it never has a
// signing key, and never needs a Kubernetes API to start.
package discovery
