// Package keystore keeps rings of signing keys where processes and machines can share them. In go rings and the version
// that they replace; out come the ring that is kept and its version. Every write is a compare-and-swap, and a crash at
// any point leaves a ring that can be loaded. It never decides what a ring holds, never signs, and never reads a key
// that others on the machine could read too.
package keystore
