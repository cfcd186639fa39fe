// Package keys holds the ring of signing keys as a value, and the rules that every ring keeps. In go private keys, states
// and times, or the bytes that a store kept of them; out come rings that are known to be whole, the public keys to
// publish, and the key that signs. It never reads a clock, never touches a file or a network, never signs, and never
// prints a private key.
package keys
