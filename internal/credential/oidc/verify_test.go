package oidc_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/test/testkit"
)

// Each of these tokens is refused, the browser shows it, and nothing is stored of the login.
func TestTokensThatAreRefused(t *testing.T) {
	rogue := testkit.Need(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	set := func(name string, value any) func(map[string]any) {
		return func(c map[string]any) {
			if value == nil {
				delete(c, name)
				return
			}
			c[name] = value
		}
	}
	for name, test := range map[string]struct {
		behavior oidctest.Behavior
		want     string
	}{
		"another nonce":           {oidctest.Behavior{Claims: set("nonce", "another")}, "nonce"},
		"no nonce":                {oidctest.Behavior{Claims: set("nonce", nil)}, "nonce"},
		"another issuer":          {oidctest.Behavior{Claims: set("iss", "https://evil.example")}, "different provider"},
		"another audience":        {oidctest.Behavior{Claims: set("aud", "other")}, "audience"},
		"more audiences, no azp":  {oidctest.Behavior{Claims: set("aud", []string{oidctest.ClientID, "other"})}, "azp"},
		"another azp":             {oidctest.Behavior{Claims: set("azp", "other")}, "azp"},
		"expired":                 {oidctest.Behavior{Claims: set("exp", start.Add(-2*time.Minute).Unix())}, "clock"},
		"no end":                  {oidctest.Behavior{Claims: set("exp", nil)}, "clock"},
		"of the future":           {oidctest.Behavior{Claims: set("iat", start.Add(2*time.Minute).Unix())}, "clock"},
		"of no time":              {oidctest.Behavior{Claims: set("iat", nil)}, "no iat"},
		"not yet":                 {oidctest.Behavior{Claims: set("nbf", start.Add(time.Hour).Unix())}, "nbf"},
		"no subject":              {oidctest.Behavior{Claims: set("sub", nil)}, "no sub"},
		"another access token":    {oidctest.Behavior{Claims: set("at_hash", "AAAA")}, "at_hash"},
		"no signature":            {oidctest.Behavior{Algorithm: "none"}, "none"},
		"a shared secret":         {oidctest.Behavior{Algorithm: "HS256", Key: []byte(strings.Repeat("k", 32))}, "HS256"},
		"a key of another issuer": {oidctest.Behavior{Algorithm: "ES256", Key: rogue}, "no key"},
		"another key of its name": {oidctest.Behavior{Algorithm: "ES256", Key: jose.JSONWebKey{Key: rogue, KeyID: "one"}}, "no key"},
		"a key for encryption": {oidctest.Behavior{Algorithm: "ES256", Key: jose.JSONWebKey{Key: rogue, KeyID: "two"},
			PublishKey: &jose.JSONWebKey{Key: rogue.Public(), KeyID: "two", Use: "enc"}}, "no key"},
		"no ID token":    {oidctest.Behavior{Tokens: set("id_token", nil)}, "no ID token"},
		"no JWT":         {oidctest.Behavior{Tokens: set("id_token", "text")}, "malformed"},
		"a line break":   {oidctest.Behavior{Tokens: set("id_token", "a\nb")}, "characters"},
		"a number":       {oidctest.Behavior{Tokens: set("id_token", 7)}, "id_token"},
		"negative time":  {oidctest.Behavior{Tokens: set("expires_in", -1)}, "negative"},
		"time as a word": {oidctest.Behavior{Tokens: set("expires_in", "soon")}, "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			p.Behave(test.behavior)
			term, pages := person(t, p.Browser(t, "alice"))
			g := obtain(t, newSource(t, p), term, nil, true)
			wantError(t, g.err, "outage", test.want)
			if g.state != nil || len(g.kept) != 0 {
				t.Error("something is kept")
			}
			page := <-pages
			if !strings.Contains(page.Body, "You are not logged in") || secrets.MatchString(page.Body) {
				t.Errorf("the browser shows %s", page.Body)
			}
		})
	}
}

func TestAlgorithms(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	public, edKey, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	for algorithm, key := range map[string]jose.JSONWebKey{"RS256": {Key: rsaKey}, "EdDSA": {Key: edKey}} {
		p := oidctest.Start(t, start)
		published := &jose.JSONWebKey{Key: rsaKey.Public(), KeyID: "two"}
		if algorithm == "EdDSA" {
			published.Key = public
		}
		key.KeyID = "two"
		noHash := func(c map[string]any) { delete(c, "at_hash") } // it would have to be of the algorithm's own hash
		p.Behave(oidctest.Behavior{Algorithm: algorithm, Key: key, PublishKey: published, Claims: noHash})
		mustLogIn(t, p, newSource(t, p))

		// The same from a provider that does not list this algorithm.
		p.Behave(oidctest.Behavior{Algorithm: algorithm, Key: key, PublishKey: published, Document: func(d map[string]any) {
			d["id_token_signing_alg_values_supported"] = []string{"ES256"}
		}})
		term, _ := person(t, p.Browser(t, "alice"))
		wantError(t, obtain(t, newSource(t, p), term, nil, true).err, "outage", algorithm)
	}
}

// The provider changes its key while the person logs in.
func TestANewKey(t *testing.T) {
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Take: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/keys" && p.Requests("/keys") == 1 {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"new kind"},{"kty":"EC","kid":"one","crv":"P-256","x":"","y":""}]}`))
			return true
		}
		return false
	}})
	mustLogIn(t, p, newSource(t, p))
	if n := p.Requests("/keys"); n != 2 {
		t.Errorf("the keys were loaded %d times", n)
	}
}

func TestClocks(t *testing.T) {
	for off, want := range map[time.Duration]string{
		0: "", 45 * time.Second: "", -45 * time.Second: "", 10 * time.Minute: "clock of this machine", -10 * time.Minute: "clock of this machine",
	} {
		p := oidctest.Start(t, start)
		p.Behave(oidctest.Behavior{IDTokenLifetime: 30 * time.Second})
		s := newSource(t, p, func(c *oidc.Config) { c.Now = func() time.Time { return p.Now().Add(off) } })
		term, _ := person(t, p.Browser(t, "alice"))
		g := obtain(t, s, term, nil, true)
		if want == "" && g.err != nil || want != "" && (g.err == nil || !strings.Contains(g.err.Error(), want)) {
			t.Errorf("a clock that is %s ahead: %v", off, g.err)
		}
	}
}

func TestAccessToken(t *testing.T) {
	present := func(c *oidc.Config) { c.Present = settings.AccessToken }
	jwt := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1772366520}`)) + ".c2ln" // start plus two minutes
	for name, test := range map[string]struct {
		tokens  map[string]any
		expires time.Time
		err     string
	}{
		"opaque":                 {nil, start.Add(10 * time.Minute), ""},
		"seconds as a string":    {map[string]any{"expires_in": "60"}, start.Add(time.Minute), ""},
		"no end":                 {map[string]any{"expires_in": nil}, time.Time{}, ""},
		"without end":            {map[string]any{"expires_in": 1e300}, start.Add(10 * 365 * 24 * time.Hour), ""},
		"a JWT":                  {map[string]any{"access_token": jwt}, start.Add(2 * time.Minute), ""},
		"a JWT, expires_in less": {map[string]any{"access_token": jwt, "expires_in": 60}, start.Add(time.Minute), ""},
		"no access token":        {map[string]any{"access_token": nil}, time.Time{}, "no access token"},
		"bound to a key":         {map[string]any{"token_type": "DPoP"}, time.Time{}, "not a bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			p.Behave(oidctest.Behavior{
				Claims: func(c map[string]any) { delete(c, "at_hash") },
				Tokens: func(tokens map[string]any) {
					for name, value := range test.tokens {
						tokens[name] = value
					}
				},
			})
			term, _ := person(t, p.Browser(t, "alice"))
			g := obtain(t, newSource(t, p, present), term, nil, true)
			if test.err != "" {
				wantError(t, g.err, "outage", test.err)
				return
			}
			if g.err != nil {
				t.Fatal(g.err)
			}
			if token := g.credential.Token.Reveal(); !strings.HasPrefix(token, "access-") && token != jwt {
				t.Error("another token is presented")
			}
			if !g.credential.Expires.Equal(test.expires) {
				t.Errorf("expires %s, want %s", g.credential.Expires, test.expires)
			}
		})
	}
}

func TestConfidentialClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	withSecret := func(c *oidc.Config) { c.ClientSecretFile = file }
	for _, methods := range [][]string{nil, {"client_secret_post"}, {"client_secret_post", "client_secret_basic"}} {
		p := oidctest.Start(t, start)
		write("hunter2\n")
		p.Behave(oidctest.Behavior{ClientSecret: "hunter2", Document: func(d map[string]any) {
			if methods != nil {
				d["token_endpoint_auth_methods_supported"] = methods
			}
		}})
		g := mustLogIn(t, p, newSource(t, p, withSecret))
		if out := obtain(t, newSource(t, p, withSecret), &terminal{}, g.state, false); out.err != nil {
			t.Error(out.err)
		}

		write("hunter2 and more")
		out := obtain(t, newSource(t, p, withSecret), &terminal{}, g.state, true)
		wantError(t, out.err, "refused", "invalid_client")
		if out.state != nil {
			t.Error("the login is forgotten for a wrong client secret")
		}
		write("\n")
		wantError(t, obtain(t, newSource(t, p, withSecret), &terminal{}, g.state, true).err, "outage", "empty")
	}
}
