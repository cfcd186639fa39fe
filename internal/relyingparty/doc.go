// Package relyingparty judges tokens as any OpenID Connect relying party would: through the issuer's discovery document
// and published keys. In go a token and its requirements; out comes a Result that lists everything that is wrong with
// the token, or an OutageError if the issuer's documents could not be read. It holds no key of its own, trusts nothing
// but https, follows no URL that stands in a token's header, and never puts a token into an error or a result.
package relyingparty
