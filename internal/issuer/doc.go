// Package issuer decides what a token says, and signs it. In go a request (who, for which audiences, how long, in which
// context), a ring of keys, a clock and randomness; out comes a signed token. Prepare checks a request and returns its
// claims, and Sign takes nothing but what Prepare returned, once: so nothing unchecked is ever signed. It never talks to a
// network or a store, never decides who may ask, and logs nothing.
package issuer
