package oidc

import (
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/credential"
)

// noticedBefore says whether the person was told before that the provider gives no refresh tokens: the last login left none either.
// Who logs in by hand may do so because they have changed something, and is told again.
func noticedBefore(request credential.Request) bool {
	before := request.Previous
	return request.ExecInfo.FromClient && before != nil && before.State == nil && !before.Credential.Token.IsZero()
}

// noRefreshToken says why the person will be asked again soon, and what can be done. OpenID Connect Core 1.0 section 11 has providers
// give a refresh token only to those who consent each time, and many give it without; some of them refuse users who are asked for
// consent.
func (p *session) noRefreshToken(expires time.Time) string {
	until := "when this login expires"
	if !expires.IsZero() {
		until += ", at " + utc(expires)
	}
	notice := fmt.Sprintf("%s has given no refresh token, so you will be asked to log in again %s: ", p.Issuer, until)
	allow := fmt.Sprintf("have the provider allow it (offline access) for the client %q", p.ClientID)
	switch _, prompted := p.Parameters["prompt"]; {
	case !p.document.offersOffline():
		return notice + "it does not offer the scope offline_access; " + allow
	case !prompted:
		return notice + "log in with --parameter prompt=consent, without which some providers give none; or " + allow
	}
	return notice + allow
}
