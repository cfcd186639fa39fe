// Package issuer decides the claims of a token, and signs it. In go a request (subject, audiences, lifetime, context), a ring of
// keys, a clock and randomness; out comes a signed token. Prepare checks a request and returns its
// claims, and Sign accepts only what Prepare returned, once: so nothing unchecked is ever signed. It never uses a
// network or a store, never decides which user may request a token, and logs nothing.
package issuer
