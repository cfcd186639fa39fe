package oidc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// skew is how far the clock of this machine and that of the provider may be apart.
const skew = time.Minute

// expected is what an ID token must have besides issuer, audience and times.
type expected struct {
	// nonce is that of the request; empty if the request could have none. A token of a refresh may leave it out (optionalNonce).
	nonce         string
	optionalNonce bool
	// subject is the user's; empty if it is not known yet.
	subject string
}

// verify checks an ID token (OpenID Connect Core 1.0 section 3.1.3.7; 12.2 for a refresh), and its hash of the access token if it has one.
func (p *session) verify(ctx context.Context, a answer, want expected) (*oidc.IDToken, error) {
	now := p.Now()
	verifier := oidc.NewVerifier(p.Issuer, p.keys, &oidc.Config{
		ClientID:             p.ClientID,
		SupportedSigningAlgs: p.document.Algorithms,
		Now:                  func() time.Time { return now.Add(-skew) },
	})
	token, err := verifier.Verify(ctx, a.idToken.Reveal())
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, fmt.Errorf("the ID token expired at %s, before it came, at %s: is the clock of this machine right?", utc(expired.Expiry), utc(now))
	case err != nil:
		return nil, fmt.Errorf("verify the ID token: %s", plain(a.redact(err.Error())))
	case token.IssuedAt.IsZero():
		return nil, errors.New("the ID token has no iat, the time at which it was issued")
	case token.IssuedAt.After(now.Add(skew)):
		return nil, fmt.Errorf("the ID token was issued at %s, and came at %s: is the clock of this machine right?", utc(token.IssuedAt), utc(now))
	case token.Subject == "":
		return nil, errors.New("the ID token has no sub")
	case want.subject != "" && token.Subject != want.subject:
		return nil, fmt.Errorf("the ID token is of %q, and %q had logged in", plain(token.Subject), plain(want.subject))
	case want.nonce != "" && token.Nonce != want.nonce && (token.Nonce != "" || !want.optionalNonce):
		return nil, errors.New("the ID token is not of this login: it has another nonce")
	}
	var claims struct {
		AuthorizedParty string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return nil, fmt.Errorf("read the ID token: %s", plain(err.Error()))
	}
	if claims.AuthorizedParty != p.ClientID && (claims.AuthorizedParty != "" || len(token.Audience) > 1) {
		return nil, fmt.Errorf("the ID token is for %q: its azp is %q, and not %q", token.Audience, plain(claims.AuthorizedParty), p.ClientID)
	}
	if token.AccessTokenHash != "" && !a.accessToken.IsZero() {
		if err := token.VerifyAccessToken(a.accessToken.Reveal()); err != nil {
			return nil, errors.New("the access token is not the one that came with the ID token: at_hash differs")
		}
	}
	return token, nil
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }
