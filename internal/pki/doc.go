// Package pki issues certificates, and reports when they must be made again. In go PEM, names, the time and randomness, out come PEM or
// the reason why a certificate does not fit. It is pure: it reads and writes no file.
package pki
