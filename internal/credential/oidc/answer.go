package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// answer is what the token endpoint gives (RFC 6749 section 5.1, OpenID Connect Core 1.0 section 3.1.3.3).
type answer struct {
	idToken, accessToken, refreshToken credential.Secret
	bearer                             bool
	// lifetime is that of the access token, counted from asked; zero if it is absent.
	lifetime time.Duration
	asked    time.Time
}

// longest bounds the lifetimes of a provider's answers, which would overflow otherwise.
const longest = 10 * 365 * 24 * time.Hour

// redeem posts to the token endpoint. The secrets of the form are named, so that no error repeats them.
func (p *session) redeem(ctx context.Context, form url.Values) (answer, error) {
	if resource := p.Parameters["resource"]; resource != "" {
		form.Set("resource", resource) // RFC 8707 section 2.2
	}
	asked := p.Now()
	body, err := p.post(ctx, p.document.Token, form, form.Get("code"), form.Get("code_verifier"), form.Get("refresh_token"), form.Get("device_code"))
	if err != nil {
		return answer{}, err
	}
	a, err := parseAnswer(body)
	if err != nil {
		return answer{}, fmt.Errorf("read the answer of %s: %w", p.document.Token, err)
	}
	a.asked = asked
	return a, nil
}

func parseAnswer(body []byte) (answer, error) {
	var wire struct {
		IDToken      string  `json:"id_token"`
		AccessToken  string  `json:"access_token"`
		RefreshToken string  `json:"refresh_token"`
		TokenType    string  `json:"token_type"`
		ExpiresIn    seconds `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return answer{}, fmt.Errorf("its field %q is not a %s", plain(wrongType.Field), wrongType.Type)
		}
		return answer{}, errors.New("it is not a JSON object")
	}
	for name, token := range map[string]string{"id_token": wire.IDToken, "access_token": wire.AccessToken, "refresh_token": wire.RefreshToken} {
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return answer{}, fmt.Errorf("its %s has characters that no token has", name)
		}
	}
	if wire.ExpiresIn < 0 {
		return answer{}, errors.New("its expires_in is negative")
	}
	a := answer{bearer: strings.EqualFold(wire.TokenType, "Bearer"), lifetime: time.Duration(wire.ExpiresIn)}
	for text, secret := range map[*credential.Secret]string{&a.idToken: wire.IDToken, &a.accessToken: wire.AccessToken, &a.refreshToken: wire.RefreshToken} {
		if secret != "" {
			*text = credential.NewSecret(secret)
		}
	}
	return a, nil
}

// redact takes the tokens of a out of a text.
func (a answer) redact(text string) string {
	return without(text, a.idToken.Reveal(), a.accessToken.Reveal(), a.refreshToken.Reveal())
}

// accessExpires is the end of the access token: the earlier of the answer's expiry and, if it is a JWT, its own; zero
// without either. The JWT is not verified, which is for the server that it is presented to.
func (a answer) accessExpires() time.Time {
	var expires time.Time
	if a.lifetime > 0 {
		expires = a.asked.Add(a.lifetime)
	}
	claims, _ := credential.Unverified(a.accessToken)
	if own := claims.Expires; !own.IsZero() && (expires.IsZero() || own.Before(expires)) {
		return own
	}
	return expires
}

// seconds is a duration as a JSON number of seconds, or a string with one, as some providers write it.
type seconds time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *seconds) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != n {
		return errors.New("invalid number of seconds")
	}
	*s = seconds(min(max(n, -1), longest.Seconds()) * float64(time.Second))
	return nil
}
