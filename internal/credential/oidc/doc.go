// Package oidc logs a person in with an OpenID provider, and keeps them logged in.
//
// In go an issuer, a client and the state of the last login; out comes a token that the issuer has signed and that was verified,
// and the state to store for the next time: the refresh token, which many providers change with each use.
//
// With a refresh token it needs no person. Without one it prompts the user, by the authorization code flow with PKCE on loopback (RFC
// 6749, RFC 7636, RFC 8252, RFC 9207) or by a device code (RFC 8628, with RFC 7636), and only if the client allows that. An outage is not a refusal:
// for a provider that does not answer no browser opens, and nothing is deleted.
//
// It never stores anything, never logs, never accepts an unverified token as an ID token, never follows a redirect to
// another host, and never listens on anything but loopback.
package oidc
