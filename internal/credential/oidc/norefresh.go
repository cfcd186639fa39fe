package oidc

import (
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// noticedBefore reports whether the user has seen before that the provider issues no refresh tokens: the last login left none either.
// A login by hand may follow a change of settings, and shows the notice again.
func noticedBefore(request credential.Request) bool {
	before := request.Previous
	return request.ExecInfo.FromClient && before != nil && before.State == nil && !before.Credential.Token.IsZero()
}

// noRefreshToken is the notice that the user will be prompted again soon, with advice. OpenID Connect Core 1.0 section 11 has providers
// issue a refresh token only to users who consent each time, and many issue it without; some of them refuse users when prompted for
// consent.
func (p *session) noRefreshToken(expires time.Time) string {
	until := "when this login expires"
	if !expires.IsZero() {
		until += ", at " + utc(expires)
	}
	notice := fmt.Sprintf("%s has given no refresh token, so you will have to log in again %s: ", p.Issuer, until)
	allow := fmt.Sprintf("have the provider allow it (offline access) for the client %q", p.ClientID)
	switch _, prompted := p.Parameters["prompt"]; {
	case !p.document.offersOffline():
		return notice + "it does not offer the scope offline_access; " + allow
	case !prompted:
		return notice + "log in with --parameter prompt=consent, without which some providers give none; or " + allow
	}
	return notice + allow
}
