// Package keys holds the ring of signing keys as a value, and the rules by which it changes. In go private keys, states,
// times and settings, or the bytes that a store kept of a ring; out come rings that are known to be whole, the public keys
// to publish, the key that signs, and the next changes with their times. It never reads a clock, never touches a file or a
// network, never signs, and never prints a private key.
package keys
