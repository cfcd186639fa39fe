// Package keys is "credence keys": list, rotate, revoke and probe the signing keys of an issuer. In go the command line, and the ring of a
// cluster or of a folder; out come tables and exit codes. Private keys never leave their folder: none is read or printed here.
package keys
