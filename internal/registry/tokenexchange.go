package registry

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

// tokenExchange is a registry that takes, as a password, what a token endpoint makes of a token (RFC 8693).
type tokenExchange struct {
	endpoint
	Audience           string `json:"audience"`
	Resource           string `json:"resource"`
	Scope              string `json:"scope"`
	RequestedTokenType string `json:"requestedTokenType"`
	Username           string `json:"username"`
}

func newTokenExchange(_ string, settings json.RawMessage) (exchange, error) {
	var s tokenExchange
	err := strictjson.Known(settings, &s)
	if err == nil {
		err = s.check()
	}
	if err == nil {
		s.Username, err = username(s.Username)
	}
	return s, err
}

func (s tokenExchange) credentials(ctx context.Context, token Token, now func() time.Time) (Credentials, error) {
	form := tokenendpoint.Exchange{
		SubjectToken: token.Value.Reveal(), RequestedTokenType: s.RequestedTokenType,
		Resources: some(s.Resource), Audiences: some(s.Audience), Scopes: some(s.Scope),
	}.Form()
	// From before the request, so that the password ends rather too early than too late.
	started := now()
	answer, err := s.post(ctx, form, token)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Username: s.Username, Password: identity.NewToken(answer.AccessToken), Expires: answer.expiry(started, token)}, nil
}

// some is a list of a text, unless it is empty.
func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// granted is a successful answer of a token endpoint (RFC 6749 section 5.1, RFC 8693 section 2.2.1).
type granted struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
}

// expiry is that of the answer, or that of the token where the answer has none.
func (g granted) expiry(started time.Time, token Token) time.Time {
	const most = 100 * 365 * 24 * 3600
	if g.ExpiresIn <= 0 {
		return token.Expires
	}
	return started.Add(time.Duration(min(g.ExpiresIn, most)) * time.Second)
}

// post sends a form with a token to a token endpoint, and reads its answer.
func (e endpoint) post(ctx context.Context, form url.Values, token Token) (granted, error) {
	var answer granted
	if err := e.postForm(ctx, form, &answer, token.Value.Reveal()); err != nil {
		return granted{}, err
	}
	if answer.AccessToken == "" {
		return granted{}, e.unexpected("its answer has no access_token")
	}
	return answer, nil
}
