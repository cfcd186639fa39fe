// Package tokenexchange is the source of credentials that an authorization server issues for another token (RFC 8693). In go
// a token in a file, and the settings of the exchange; out comes the token of the server's answer, after the answer was
// checked. It sends secrets over verified TLS only, or to this machine, follows no redirect with them, keeps no refresh
// token, and never includes a secret in an error, whatever the server answers. The network is passed in, as package https.
package tokenexchange
