// Package settings holds the provider and the client of an OpenID login.
//
// In go the flags of a command line and a cluster's own configuration; out come the settings, and the key under which the
// login is stored. It validates nothing, never reads a file and makes no requests, and it imports no network, so that
// a stored login can be found by a program that has none.
package settings

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Token is which of the tokens of a login is presented to the server.
type Token string

// The tokens that can be presented. Kubernetes API servers take ID tokens; access tokens only from providers that sign them as JWTs
// with an audience that the server expects (RFC 9068).
const (
	IDToken     Token = "id"
	AccessToken Token = "access"
)

// Flow is how a person logs in.
type Flow string

// The flows. Auto uses the browser of this machine, or else the device code if the provider has device codes.
const (
	Auto    Flow = "auto"
	Browser Flow = "browser"
	Device  Flow = "device"
)

// Settings are those of a login. The zero value of all but Issuer and ClientID works.
type Settings struct {
	// Issuer is the URL of the provider, exactly as it stands in its tokens: https, or http on loopback.
	Issuer string
	// ClientID is the client as the provider knows it.
	ClientID string
	// ClientSecretFile holds the secret of a confidential client; empty for a public one, as programs on people's machines are.
	ClientSecretFile string
	// Scopes are requested besides openid and offline_access.
	Scopes []string
	// Present is the token that the server gets; empty: the ID token.
	Present Token
	// Flow is how a person logs in; empty: Auto.
	Flow Flow
	// RedirectURI is where the provider sends the browser: http, on 127.0.0.1, [::1] or localhost. Empty: http://127.0.0.1/callback. The
	// port, if it has one, is the one that is listened on.
	RedirectURI string
	// Ports are tried in this order, if RedirectURI has no port; empty: any free one, which providers must allow (RFC 8252 section 7.3).
	Ports []int
	// Parameters are added to the request that starts a login, such as prompt, login_hint, audience or resource.
	Parameters map[string]string
	// CAFile holds the certificates, in PEM, that alone are trusted to vouch for the provider; empty: those of the system.
	CAFile string
	// LoginTimeout is how long a person may take; zero: ten minutes.
	LoginTimeout time.Duration
}

// Key is all that decides which credential the settings get; see credential.Source. The flow is not part of it: the token
// is the same. The file of certificates is, because it decides which provider is trusted.
func (s Settings) Key() map[string]string {
	scopes := slices.Sorted(slices.Values(s.Scopes))
	key := map[string]string{
		"source":   "oidc",
		"issuer":   s.Issuer,
		"clientID": s.ClientID,
		"scopes":   strings.Join(slices.Compact(scopes), " "),
		"present":  string(cmp.Or(s.Present, IDToken)),
	}
	if s.CAFile != "" {
		key["caFile"] = s.CAFile
	}
	for name, value := range s.Parameters {
		key["parameter "+name] = value
	}
	return key
}
