package identity

import (
	"net/url"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

func TestParseIssuer(t *testing.T) {
	cases := []struct {
		issuer string
		// want is part of the error; empty if the issuer is accepted.
		want string
	}{
		{"https://identity.example.com", ""},
		{"https://identity.example.com:8443", ""},
		{"https://127.0.0.1:8443/path", ""},
		{"https://[::1]:8443/a/b", ""},
		{"https://host/" + strings.Repeat("a", 587), ""},
		{"", "issuer is empty"},
		{"https://host/" + strings.Repeat("a", 588), "601 characters long, at most 600"},
		{"identity.example.com", "must start with https://"},
		{"http://identity.example.com", "must start with https://"},
		{"HTTPS://identity.example.com", "must start with https://"},
		{"https://", "no host"},
		{"https://:8443", "no host"},
		{"https:///path", "no host"},
		{"https://user@host", "userinfo"},
		{"http://user:secret@host", "userinfo"},
		{"https://user:secret%zz@host", "not a URL"},
		{"https://host?a=b", "query"},
		{"https://host?", "query"},
		{"https://host#f", "fragment"},
		{"https://host/path#", "fragment"},
		{"https://host/", "trailing slash"},
		{"https://host/path/", "trailing slash"},
		{"https://host//path", "empty or dot segment"},
		{"https://host/./path", "empty or dot segment"},
		{"https://host/path/..", "empty or dot segment"},
		{"https://host/a%2fb", "escaped"},
		{"https://host/a%20b", "escaped"},
		{"https://host:", "host that is not"},
		{"https://host:/path", "host that is not"},
		{`https://ho"st`, "host that is not"},
		{"https://a,b", "host that is not"},
		{"https://ho st", "position 10"},
		{"https://host\n", "position 12"},
		{"https://höst", "outside printable ASCII"},
		{"https://host:port", "not a URL"},
	}
	for _, c := range cases {
		got, err := ParseIssuer(c.issuer)
		switch {
		case c.want == "" && (err != nil || string(got) != c.issuer):
			t.Errorf("%q: %q, %v, want it unchanged", c.issuer, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || got != ""):
			t.Errorf("%q: %q, %v, want an error with %q", c.issuer, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows a password: %v", c.issuer, err)
		}
	}
}

func TestIssuerURLs(t *testing.T) {
	cases := []struct{ issuer, configuration, jwks, path string }{
		{"https://host:1", "https://host:1/.well-known/openid-configuration", "https://host:1/jwks", ""},
		{"https://host/a/b", "https://host/a/b/.well-known/openid-configuration", "https://host/a/b/jwks", "/a/b"},
	}
	for _, c := range cases {
		issuer := testkit.Need(ParseIssuer(c.issuer))(t)
		if got := issuer.ConfigurationURL(); got != c.configuration {
			t.Errorf("%s: configuration at %s, want %s", issuer, got, c.configuration)
		}
		if got := issuer.JWKSURL(); got != c.jwks {
			t.Errorf("%s: keys at %s, want %s", issuer, got, c.jwks)
		}
		if got := issuer.Path(); got != c.path {
			t.Errorf("%s: path %q, want %q", issuer, got, c.path)
		}
	}
}

// An accepted issuer is a URL of nothing but scheme, host and plain path, and every relying party reads it alike.
func FuzzParseIssuer(f *testing.F) {
	for _, seed := range []string{"https://host", "https://host:1/a", "https://u:p@host", "https://host?", "https://[::1]/a", "https://host/%2e", "https://a\\b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		issuer, err := ParseIssuer(s)
		if err != nil {
			return
		}
		if string(issuer) != s {
			t.Fatalf("%q became %q", s, issuer)
		}
		u, err := url.Parse(s)
		if err != nil {
			t.Fatalf("accepted %q, which is not a URL: %v", s, err)
		}
		if plain := "https://" + u.Host + u.Path; plain != s {
			t.Errorf("accepted %q, which has more than scheme, host and path", s)
		}
		if joined := u.JoinPath("jwks").String(); joined != issuer.JWKSURL() {
			t.Errorf("keys at %q, a client would look at %q", issuer.JWKSURL(), joined)
		}
	})
}
