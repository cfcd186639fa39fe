package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// Source gets tokens from an OpenID provider. It implements credential.Source.
type Source struct{ config Config }

// New returns the source for a configuration, or an error if that is invalid. It reads no file and makes no requests.
func New(config Config) (*Source, error) {
	config, err := config.completed()
	if err != nil {
		return nil, err
	}
	return &Source{config: config}, nil
}

// Key implements credential.Source.
func (s *Source) Key() map[string]string { return s.config.Key() }

// state is what is kept between logins.
type state struct {
	RefreshToken string `json:"refreshToken"`
	// Subject and Nonce are of the login: tokens of a refresh must be of the same (OpenID Connect Core 1.0 section 12.2).
	Subject string `json:"subject,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
}

func (s state) encode() json.RawMessage {
	if s.RefreshToken == "" {
		return nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings marshal
	}
	return raw
}

// forgotten is the state that makes the caller delete the stored one.
var forgotten = json.RawMessage("null")

// Obtain implements credential.Source: a refresh if there is a refresh token, and else, if the user may be prompted, a login.
//
// The error is a credential.ErrNeedsPerson if the user may not be prompted, or did not log in; a credential.ErrRefused if the provider
// or the user denied it; any other is an outage, or an answer that could not be verified, for which no browser opens.
func (s *Source) Obtain(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	kept := parseState(request.State())
	if kept.RefreshToken == "" && !request.ExecInfo.Interactive {
		why := "there is neither a terminal nor a display"
		if request.ExecInfo.FromClient {
			why = "the client does not allow a prompt"
		}
		return credential.Credential{}, nil, fmt.Errorf("log in to %s: %w: %s", s.config.Issuer, credential.ErrNeedsPerson, why)
	}
	p, err := newSession(ctx, s.config)
	if err != nil {
		return credential.Credential{}, nil, err
	}
	defer p.close()

	if kept.RefreshToken != "" {
		got, next, err := p.refresh(ctx, kept, request.Keep)
		if !errors.Is(err, credential.ErrNeedsPerson) || !request.ExecInfo.Interactive {
			return got, next, err
		}
		request.Terminal.Notice("The login to %s is over: %s", s.config.Issuer, plain(err.Error()))
		got, next, err = p.logIn(ctx, request)
		if err != nil && next == nil {
			next = forgotten
		}
		return got, next, err
	}
	return p.logIn(ctx, request)
}

// parseState reads a stored state. An invalid one was not written by this program, and is ignored.
func parseState(raw json.RawMessage) state {
	var kept state
	if json.Unmarshal(raw, &kept) != nil {
		return state{}
	}
	return kept
}

// refresh gets new tokens for a refresh token (RFC 6749 section 6). A new refresh token is kept before anything else can fail.
func (p *session) refresh(ctx context.Context, kept state, keep func(json.RawMessage) error) (credential.Credential, json.RawMessage, error) {
	none := credential.Credential{}
	redeeming, done := outlasting(ctx, refreshGrace, p.Wait)
	defer done()
	a, err := p.redeem(redeeming, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {kept.RefreshToken}})
	if refused, ok := errors.AsType[*refusal](err); ok && refused.needsPerson() {
		return none, forgotten, fmt.Errorf("refresh the login to %s: %w: %w", p.Issuer, err, credential.ErrNeedsPerson)
	}
	if err != nil {
		return none, nil, fmt.Errorf("refresh the login to %s: %w", p.Issuer, classified(err))
	}
	next := kept
	if !a.refreshToken.IsZero() && a.refreshToken.Reveal() != kept.RefreshToken {
		next.RefreshToken = a.refreshToken.Reveal()
		_ = keep(next.encode()) // if it cannot be written, the token is good all the same
	}
	got, _, err := p.present(ctx, a, expected{nonce: kept.Nonce, optionalNonce: true, subject: kept.Subject}, true)
	if err != nil {
		return none, next.encode(), fmt.Errorf("refresh the login to %s: %w", p.Issuer, err)
	}
	return got, next.encode(), nil
}

// logIn prompts the user. It returns the state of the new login.
func (p *session) logIn(ctx context.Context, request credential.Request) (credential.Credential, json.RawMessage, error) {
	a, want, finish, err := p.interact(ctx, request.Terminal)
	if err != nil {
		return credential.Credential{}, nil, fmt.Errorf("log in to %s: %w", p.Issuer, err)
	}
	got, subject, err := p.present(ctx, a, want, false)
	finish(err)
	if err != nil {
		return credential.Credential{}, nil, fmt.Errorf("log in to %s: %w", p.Issuer, err)
	}
	if a.refreshToken.IsZero() && !noticedBefore(request) {
		request.Terminal.Notice("%s", p.noRefreshToken(got.Expires))
	}
	return got, state{RefreshToken: a.refreshToken.Reveal(), Subject: subject, Nonce: want.nonce}.encode(), nil
}

// interact lets the user log in, a second time if the scope for refresh tokens is refused: Keycloak and Okta list it for all clients, and
// refuse it to some clients or users.
func (p *session) interact(ctx context.Context, terminal credential.Terminal) (a answer, want expected, finish func(error), err error) {
	a, want, finish, err = p.prompt(ctx, terminal)
	refused, ok := errors.AsType[*refusal](err)
	if !ok || !slices.Contains([]string{"invalid_scope", "not_allowed"}, refused.code) || !p.document.offersOffline() {
		return a, want, finish, err
	}
	terminal.Notice("%s refuses a scope, so log in without offline_access: %s", p.Issuer, refused)
	p.document.Scopes = []string{"openid"}
	return p.prompt(ctx, terminal)
}

// prompt lets the user log in, by browser or by code. finish shows the result.
func (p *session) prompt(ctx context.Context, terminal credential.Terminal) (a answer, want expected, finish func(error), err error) {
	if p.Flow != settings.Device {
		a, want, finish, err = p.byBrowser(ctx, terminal)
		if !errors.Is(err, errNoBrowser) {
			return a, want, finish, err
		}
	}
	a, err = p.byDevice(ctx, terminal)
	return a, expected{}, func(error) {}, err
}

// present verifies an answer, and makes a credential of the token that is to be presented.
func (p *session) present(ctx context.Context, a answer, want expected, refreshed bool) (credential.Credential, string, error) {
	none := credential.Credential{}
	if a.idToken.IsZero() && (p.Present == settings.IDToken || want.nonce != "" && !want.optionalNonce) {
		if refreshed {
			return none, "", fmt.Errorf("the provider gives no ID token for a refresh token: log in anew, or present the access token: %w", credential.ErrNeedsPerson)
		}
		return none, "", errors.New("the provider gave no ID token")
	}
	got := credential.Credential{Token: a.accessToken, Expires: a.accessExpires()}
	subject := want.subject
	if !a.idToken.IsZero() {
		token, err := p.verify(ctx, a, want)
		if err != nil {
			return none, "", err
		}
		subject = token.Subject
		if p.Present == settings.IDToken {
			return credential.Credential{Token: a.idToken, Expires: token.Expiry}, subject, nil
		}
	}
	switch {
	case a.accessToken.IsZero():
		return none, "", errors.New("the provider gave no access token")
	case !a.bearer:
		return none, "", errors.New("the provider's access token is not a bearer token, which is all that the protocol of clients can carry")
	case !got.Expires.IsZero() && got.Expires.Before(p.Now().Add(-skew)):
		return none, "", fmt.Errorf("the access token expired at %s, before it came, at %s: is the clock of this machine right?", utc(got.Expires), utc(p.Now()))
	}
	return got, subject, nil
}

// classified adds the class to a provider's error: anything but an outage would fail again.
func classified(err error) error {
	if refused, ok := errors.AsType[*refusal](err); ok && !refused.outage() {
		return fmt.Errorf("%w: %w", err, credential.ErrRefused)
	}
	return err
}
