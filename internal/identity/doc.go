// Package identity holds the words of Credence as values: issuers, subjects, lifetimes, algorithms, key IDs and tokens.
// In go strings, durations and public keys; out come well-formed values. It imports the standard
// library only, and it never signs, stores, logs or prints a secret.
package identity
