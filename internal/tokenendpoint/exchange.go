package tokenendpoint

import (
	"cmp"
	"net/url"
	"strings"
)

// Types of tokens (RFC 8693 section 3).
const (
	AccessToken = "urn:ietf:params:oauth:token-type:access_token"
	IDToken     = "urn:ietf:params:oauth:token-type:id_token"
	JWT         = "urn:ietf:params:oauth:token-type:jwt"
)

// Exchange is a request for a token in exchange for another one. Empty fields are left to the server.
type Exchange struct {
	SubjectToken string
	// SubjectTokenType is JWT where it is empty.
	SubjectTokenType             string
	RequestedTokenType           string
	Resources, Audiences, Scopes []string
}

// Form is the body of the request (RFC 8693 section 2.1). It holds the token.
func (e Exchange) Form() url.Values {
	form := url.Values{
		"grant_type":         {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":      {e.SubjectToken},
		"subject_token_type": {cmp.Or(e.SubjectTokenType, JWT)},
	}
	if e.RequestedTokenType != "" {
		form.Set("requested_token_type", e.RequestedTokenType)
	}
	if len(e.Resources) > 0 {
		form["resource"] = e.Resources
	}
	if len(e.Audiences) > 0 {
		form["audience"] = e.Audiences
	}
	if len(e.Scopes) > 0 {
		form.Set("scope", strings.Join(e.Scopes, " "))
	}
	return form
}
