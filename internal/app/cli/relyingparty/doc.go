// Package relyingparty is "credence relying-party": check any issuer, and a token of it, as relying parties do. In go an issuer and a token;
// out come checks with their verdicts. The token is never sent or printed.
package relyingparty
