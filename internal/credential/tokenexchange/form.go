package tokenexchange

import (
	"context"
	"net/url"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/tokenendpoint"
)

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
	form := tokenendpoint.Exchange{
		SubjectToken: subject.Reveal(), SubjectTokenType: s.SubjectTokenType, RequestedTokenType: s.RequestedTokenType,
		Resources: s.Resources, Audiences: s.Audiences, Scopes: s.Scopes,
	}.Form()
	if s.ClientID != "" && s.Authentication != Basic {
		form.Set("client_id", s.ClientID)
	}
	if s.Authentication == Post {
		form.Set("client_secret", secret.Reveal())
	}
	return form
}
