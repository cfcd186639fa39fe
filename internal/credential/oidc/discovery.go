package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// document is a provider's metadata (OpenID Connect Discovery 1.0 section 3, RFC 8414, RFC 8628 section 4, RFC 9207 section 3).
type document struct {
	Issuer              string   `json:"issuer"`
	Authorization       string   `json:"authorization_endpoint"`
	Token               string   `json:"token_endpoint"`
	DeviceAuthorization string   `json:"device_authorization_endpoint"`
	Revocation          string   `json:"revocation_endpoint"`
	Keys                string   `json:"jwks_uri"`
	Algorithms          []string `json:"id_token_signing_alg_values_supported"`
	Scopes              []string `json:"scopes_supported"`
	AuthMethods         []string `json:"token_endpoint_auth_methods_supported"`
	NamesItself         bool     `json:"authorization_response_iss_parameter_supported"`
}

// algorithms are the accepted signature algorithms, if the provider lists them. "none" and those with a shared secret are not among
// them.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// discover gets and checks the document of an issuer.
func discover(ctx context.Context, c *http.Client, issuer string) (*document, error) {
	body, err := get(ctx, c, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", issuer, err)
	}
	d, err := parseDocument(issuer, body)
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", issuer, err)
	}
	return d, nil
}

func parseDocument(issuer string, body []byte) (*document, error) {
	from, err := issuerURL(issuer)
	if err != nil {
		return nil, err
	}
	d := &document{}
	if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("its discovery document is not a JSON object of the expected form: %w", err)
	}
	if d.Issuer != issuer {
		return nil, fmt.Errorf("its discovery document is of issuer %q: give the issuer exactly as the provider writes it", plain(d.Issuer))
	}
	for _, endpoint := range []struct {
		name, address string
		required      bool
	}{
		{"authorization_endpoint", d.Authorization, false},
		{"token_endpoint", d.Token, true},
		{"device_authorization_endpoint", d.DeviceAuthorization, false},
		{"revocation_endpoint", d.Revocation, false},
		{"jwks_uri", d.Keys, true},
	} {
		if endpoint.address == "" && !endpoint.required {
			continue
		}
		if endpoint.address == "" {
			return nil, fmt.Errorf("its discovery document has no %s", endpoint.name)
		}
		if err := endpointURL(from, endpoint.name, endpoint.address); err != nil {
			return nil, err
		}
	}
	if len(d.Algorithms) == 0 {
		d.Algorithms = []string{"RS256"} // required of every provider (OpenID Connect Core 1.0 section 15.1)
	}
	d.Algorithms = slices.DeleteFunc(d.Algorithms, func(a string) bool { return !slices.Contains(algorithms, a) })
	if len(d.Algorithms) == 0 {
		return nil, errors.New("it signs ID tokens with no accepted algorithm")
	}
	return d, nil
}

// scopes are those to request. A refresh token is requested unless the provider lists its scopes and has none for that.
func (d *document) scopes(more []string) string {
	scopes := []string{"openid"}
	if d.offersOffline() {
		scopes = append(scopes, "offline_access")
	}
	for _, scope := range more {
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return strings.Join(scopes, " ")
}

// offersOffline reports whether the provider may know the scope for refresh tokens (OpenID Connect Core 1.0 section 11).
func (d *document) offersOffline() bool {
	return len(d.Scopes) == 0 || slices.Contains(d.Scopes, "offline_access")
}
