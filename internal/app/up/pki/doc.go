// Package pki issues the certificates of the components of one machine from the cluster's own authority, and reports when
// they must be made again. In go PEM, names, the time and randomness, out come PEM or the reason why a certificate does
// not fit. It is pure: it reads and writes no file, and makes no authority of its own.
package pki
