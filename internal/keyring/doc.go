// Package keyring keeps the ring of one issuer in operation: a Follower holds the stored ring, a Keeper makes the changes that
// are due, an Operator carries out commands. In go a key store, a clock and settings; out come snapshots to sign and
// publish with, and changes that were saved. It decides nothing (package keys does), and never logs or shows a private key.
package keyring
