package tokenexchange

import (
	"context"
	"net/url"
	"strings"

	"github.com/credence-id/credence/internal/credential"
)

const grantType = "urn:ietf:params:oauth:grant-type:token-exchange"

// Poster sends a form to a token endpoint, and returns the answer; https.Poster does it.
type Poster interface {
	Post(ctx context.Context, form Form) (status int, body []byte, err error)
}

// Form is one request.
type Form struct {
	Endpoint string
	// Values hold secrets.
	Values url.Values
	// User and Password are for a header of HTTP's Basic authentication; without a user the header is omitted.
	User     string
	Password credential.Secret
	// CAFile has the PEM certificates that the server's is verified with. Empty: those of the system.
	CAFile string
}

// form is the request (RFC 8693 section 2.1).
func (s *Source) form(subject, secret credential.Secret) Form {
	form := Form{Endpoint: s.Endpoint, Values: s.values(subject, secret), CAFile: s.CAFile}
	if s.Authentication == Basic {
		form.User, form.Password = s.ClientID, secret
	}
	return form
}

func (s *Source) values(subject, secret credential.Secret) url.Values {
	form := url.Values{"grant_type": {grantType}, "subject_token": {subject.Reveal()}, "subject_token_type": {s.SubjectTokenType}}
	if s.SubjectTokenType == "" {
		form.Set("subject_token_type", JWT)
	}
	if s.RequestedTokenType != "" {
		form.Set("requested_token_type", s.RequestedTokenType)
	}
	if len(s.Resources) > 0 {
		form["resource"] = s.Resources
	}
	if len(s.Audiences) > 0 {
		form["audience"] = s.Audiences
	}
	if len(s.Scopes) > 0 {
		form.Set("scope", strings.Join(s.Scopes, " "))
	}
	if s.ClientID != "" && s.Authentication != Basic {
		form.Set("client_id", s.ClientID)
	}
	if s.Authentication == Post {
		form.Set("client_secret", secret.Reveal())
	}
	return form
}
