// Package keystore keeps rings of signing keys where processes and machines can share them: in a directory, or in a
// Secret. In go rings and the version that they replace; out come the ring that is kept, its version, and the time at
// which it was known to be the stored one. Every write is a compare-and-swap, and a crash at any point leaves a ring that
// can be loaded. It never decides what a ring holds, never signs, never reads a key file that others on the machine could
// read too, and shows the content of a Secret neither in errors nor in logs.
package keystore
