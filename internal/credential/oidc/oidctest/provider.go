// Package oidctest is an OpenID provider on loopback, and a browser for it, for tests of programs that log in. In go clients and
// behavior; out come the answers of a provider that is stricter than most: codes and refresh tokens are good for one use, a second
// use ends the whole login (RFC 9700 section 4.14), the PKCE verifier, redirect URI and client are compared, and devices that poll too
// soon must slow down. It can be made to misbehave. It never listens on anything but loopback.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/test/testkit"
)

// ClientID is the client that every provider knows. It is public unless Behavior.ClientSecret is set.
const ClientID = "kubernetes"

// Provider is a running provider.
type Provider struct {
	// Issuer is its URL, CAFile the file of the certificate that vouches for it.
	Issuer, CAFile string

	server *httptest.Server
	key    *ecdsa.PrivateKey

	mu       sync.Mutex
	behavior Behavior
	now      time.Time
	serial   int
	sessions map[string]string // cookie to user
	codes    map[string]*code
	devices  map[string]*device
	refresh  map[string]*refreshToken
	requests map[string]int
}

// Behavior is how a provider differs from a good one. The zero value is a good one with a public client.
type Behavior struct {
	// ClientSecret makes the client a confidential one.
	ClientSecret string
	// Document edits the discovery document, Claims the claims of an ID token, Tokens the answer of the token endpoint, Redirect the
	// answer of the authorization endpoint, Device that of the device authorization endpoint.
	Document, Claims, Tokens, Device func(map[string]any)
	Redirect                         func(map[string]string)
	// Take handles a request in place of the provider, and reports whether it did.
	Take func(w http.ResponseWriter, r *http.Request) bool
	// Key signs ID tokens instead of the provider's own key; Algorithm is its algorithm, or "none".
	Key       any
	Algorithm string
	// PublishKey adds a key to the key set.
	PublishKey *jose.JSONWebKey
	// Deny makes users deny the login.
	Deny bool
	// IDTokenLifetime is five minutes if it is zero.
	IDTokenLifetime time.Duration
}

// login is what a person agreed to; everything that came from it ends with it.
type login struct {
	user, scope, nonce string
	ended              bool
}

// Start starts a provider whose clock stands at now, until the test ends.
func Start(t testing.TB, now time.Time) *Provider {
	t.Helper()
	key := testkit.Need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	p := &Provider{
		key: key, now: now,
		sessions: map[string]string{}, codes: map[string]*code{}, devices: map[string]*device{},
		refresh: map[string]*refreshToken{}, requests: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.document)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /login", p.logIn)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /device", p.deviceAuthorization)
	mux.HandleFunc("POST /activate", p.activate)
	mux.HandleFunc("POST /revoke", p.revoke)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests[r.URL.Path]++
		take := p.behavior.Take
		p.mu.Unlock()
		if take != nil && take(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.Issuer = p.server.URL
	p.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(p.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}), 0o600))
	return p
}

// Behave changes the behavior from now on.
func (p *Provider) Behave(b Behavior) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behavior = b
}

// Advance moves the provider's clock on.
func (p *Provider) Advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// Now is the provider's clock.
func (p *Provider) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Requests returns how often a path was requested.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

func (p *Provider) document(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	document := map[string]any{
		"issuer":                                         p.Issuer,
		"authorization_endpoint":                         p.Issuer + "/authorize",
		"token_endpoint":                                 p.Issuer + "/token",
		"device_authorization_endpoint":                  p.Issuer + "/device",
		"revocation_endpoint":                            p.Issuer + "/revoke",
		"jwks_uri":                                       p.Issuer + "/keys",
		"response_types_supported":                       []string{"code"},
		"subject_types_supported":                        []string{"public"},
		"scopes_supported":                               []string{"openid", "offline_access", "groups"},
		"id_token_signing_alg_values_supported":          []string{"ES256", "RS256", "EdDSA", "HS256", "none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if p.behavior.Document != nil {
		p.behavior.Document(document)
	}
	writeJSON(w, http.StatusOK, document)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "one", Algorithm: "ES256", Use: "sig"}}}
	if p.behavior.PublishKey != nil {
		set.Keys = append(set.Keys, *p.behavior.PublishKey)
	}
	writeJSON(w, http.StatusOK, set)
}

// next makes a text that nothing else has: codes, tokens, cookies. They need not be unguessable here.
func (p *Provider) next(kind string) string {
	p.serial++
	return fmt.Sprintf("%s-%06d", kind, p.serial)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, code, description string) {
	status := http.StatusBadRequest
	if code == "invalid_client" {
		status = http.StatusUnauthorized
	}
	writeJSON(w, status, map[string]string{"error": code, "error_description": description})
}
