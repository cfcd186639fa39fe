package tokenexchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

// answer is a successful answer (RFC 8693 section 2.2.1).
type answer struct {
	AccessToken     string          `json:"access_token"`
	IssuedTokenType string          `json:"issued_token_type"`
	TokenType       string          `json:"token_type"`
	ExpiresIn       json.RawMessage `json:"expires_in"`
}

// read returns the credential of a successful answer.
func (s *Source) read(body []byte, started time.Time) (credential.Credential, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return credential.Credential{}, errors.New("the answer is not a JSON object with the members of RFC 8693: is it the token endpoint?")
	}
	switch {
	case a.AccessToken == "":
		return credential.Credential{}, errors.New("the answer has no access_token")
	// N_A is of a token that is not an access token, which a server may take as a bearer token all the same.
	case !strings.EqualFold(a.TokenType, "Bearer") && !strings.EqualFold(a.TokenType, "N_A"):
		return credential.Credential{}, fmt.Errorf("the answer has a token of type %q: only bearer tokens can be presented", plain(a.TokenType))
	case s.RequestedTokenType != "" && a.IssuedTokenType != s.RequestedTokenType:
		return credential.Credential{}, fmt.Errorf("the answer has a token of type %q, but %q was requested", plain(a.IssuedTokenType), s.RequestedTokenType)
	case !presentable(a.IssuedTokenType):
		return credential.Credential{}, fmt.Errorf("the answer has a token of type %q, which cannot be presented to a server", plain(a.IssuedTokenType))
	}
	lifetime, err := lifetimeOf(a.ExpiresIn)
	if err != nil {
		return credential.Credential{}, err
	}
	token := credential.NewSecret(a.AccessToken)
	claims, _ := credential.Unverified(token)
	return credential.Credential{Token: token, Expires: expiry(started, lifetime, claims.Expires)}, nil
}

// presentable reports whether a token of the type can be sent in a header. Many servers omit the type.
func presentable(tokenType string) bool {
	switch tokenType {
	case "", tokenendpoint.AccessToken, tokenendpoint.IDToken, tokenendpoint.JWT:
		return true
	}
	return false
}

// lifetimeOf returns expires_in: a number of seconds, which some servers write as a string. Zero: it is absent.
func lifetimeOf(raw json.RawMessage) (time.Duration, error) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return 0, nil
	}
	const most = 100 * 365 * 24 * 3600
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0) {
		return 0, fmt.Errorf("the answer has expires_in %q, which is not a number of seconds to come", plain(text))
	}
	return time.Duration(min(seconds, most)) * time.Second, nil
}

// expiry is the end of a token: the earlier one of the answer's and the token's own. The answer's holds whatever
// clock this machine has; if the token's own has passed, the clock is wrong.
func expiry(started time.Time, lifetime time.Duration, own time.Time) time.Time {
	if lifetime == 0 {
		return own
	}
	end := started.Add(lifetime)
	if own.After(started) && own.Before(end) {
		return own
	}
	return end
}

// tooManyRequests is a status of HTTP that is not final whatever error it comes with.
const tooManyRequests = 429

// refusal is the error of an answer that is not successful (RFC 6749 section 5.2, RFC 8693 section 2.2.2).
func refusal(status int, body []byte, secrets ...credential.Secret) error {
	code, description := tokenendpoint.Refusal(body)
	sent := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		sent = append(sent, secret.Reveal())
	}
	message := fmt.Sprintf("the server answers %d", status)
	if code != "" {
		message += ", " + plain(tokenendpoint.Redact(code, sent...))
	}
	if description != "" {
		message += ": " + plain(tokenendpoint.Redact(description, sent...))
	}
	if status >= 300 && status < 400 {
		return fmt.Errorf("%s: redirects are not followed; give the URL that it leads to", message)
	}
	if status < 500 && status != tooManyRequests && final(code) {
		return fmt.Errorf("%s: %w", message, credential.ErrRefused)
	}
	return errors.New(message)
}

// final reports whether the same request would have the same answer later.
func final(code string) bool {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"invalid_target", "access_denied", "unsupported_token_type":
		return true
	}
	return false
}

// textLimit bounds, in characters, text of the other side that is shown.
const textLimit = 300

func plain(text string) string { return credential.Plain(text, textLimit) }
