// Package cli is the command tree of the credence program: tokens, identities, keys, checks, version and completion. In go arguments, standard
// streams, and the user's kubeconfig or a folder with keys; out come what the command prints and one exit code. Only "token
// create" ever prints a token, on standard output; everything written to standard error passes a guard that would redact
// one.
package cli
