// Package keyring keeps the ring of one issuer in operation: a Follower holds what the store has, a Keeper does what is
// due, an Operator does what somebody asks for. In go a key store, a clock and settings; out come snapshots to sign and
// publish with, and changes that were saved. It decides nothing (package keys does), and never logs or shows a private key.
package keyring
