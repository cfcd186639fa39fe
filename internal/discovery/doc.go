// Package discovery holds the public documents of an issuer as ready-made bytes, and the handler that serves them
// (OpenID Connect Discovery 1.0; RFC 7517). In go an issuer with its public keys, or documents from outside; out come
// documents that were checked as relying parties check them, and HTTP answers. It never holds a private key, never reads
// a file or an API, never logs, and never trusts the host that a request names.
package discovery
