// Package webhook wires the program credence-server webhook: it answers admission reviews of pods, of Secrets that carry
// tokens, and of workloads. In go flags, out comes an HTTPS server. It decides nothing itself (packages below
// internal/admission do), and writes nothing to any cluster.
package webhook
