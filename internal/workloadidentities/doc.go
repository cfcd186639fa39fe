// Package workloadidentities is the client of the identity cluster. In go names, out come current identities and
// CredentialsBindings, tokens, the revoked keys, and a call for every change: each namespace is watched from the first request for an
// object of it, so that rights in these namespaces are all it needs. It writes nothing but reports of delivery.
package workloadidentities
