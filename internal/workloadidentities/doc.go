// Package workloadidentities is the client of the identity cluster. In go names, out come identities as they are now, tokens of
// them, which keys were revoked, and word of every change: each namespace is watched from when somebody first asks for an
// identity of it, so that rights in these namespaces are all it needs. It writes nothing but reports of delivery.
package workloadidentities
