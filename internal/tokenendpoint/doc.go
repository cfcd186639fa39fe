// Package tokenendpoint is what clients of token endpoints have in common (RFC 6749 section 3.2, RFC 8693). In goes what was configured, and
// what a server answered; out come whether secrets may be sent to a URL, the form of a token exchange, and the reason of a refusal, without
// secrets. It sends nothing: package network does, so that programs without a network can have the rest.
package tokenendpoint
