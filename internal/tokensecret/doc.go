// Package tokensecret is the layout of Secrets that carry tokens of workload identities, as GEP-26 defines it. In go labels,
// annotations and data, out come the identity and the context that a Secret requests, and the bytes that belong into it. It
// reads and writes nothing itself.
package tokensecret
