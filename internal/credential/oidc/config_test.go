package oidc_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/test/testkit"
)

var _ credential.Source = (*oidc.Source)(nil)

func TestConfigurationsThatAreRefused(t *testing.T) {
	good := oidc.Config{Settings: settings.Settings{Issuer: "https://login.example.com/realms/one", ClientID: "kubernetes"}}
	testkit.Must(t, testkit.Err(oidc.New(good)))
	for want, change := range map[string]func(*oidc.Config){
		"no issuer":           func(c *oidc.Config) { c.Issuer = "" },
		"must be https":       func(c *oidc.Config) { c.Issuer = "http://login.example.com" },
		"must be a URL":       func(c *oidc.Config) { c.Issuer = "login.example.com" },
		`example.com?x=1`:     func(c *oidc.Config) { c.Issuer = "https://login.example.com?x=1" },
		`example.com#x`:       func(c *oidc.Config) { c.Issuer = "https://login.example.com#x" },
		`u:p@login`:           func(c *oidc.Config) { c.Issuer = "https://u:p@login.example.com" },
		"no client ID":        func(c *oidc.Config) { c.ClientID = "" },
		`unknown token "jwt"`: func(c *oidc.Config) { c.Present = "jwt" },
		`unknown flow "push"`: func(c *oidc.Config) { c.Flow = "push" },
		`"state"`:             func(c *oidc.Config) { c.Parameters = map[string]string{"state": "x"} },
		`"redirect_uri"`:      func(c *oidc.Config) { c.Parameters = map[string]string{"redirect_uri": "x"} },
		`"Redirect_URI"`:      func(c *oidc.Config) { c.Parameters = map[string]string{"Redirect_URI": "x"} },
		`scope "a b"`:         func(c *oidc.Config) { c.Scopes = []string{"a b"} },
		"its host must be":    func(c *oidc.Config) { c.RedirectURI = "http://example.com/callback" },
		"must look like":      func(c *oidc.Config) { c.RedirectURI = "https://127.0.0.1/callback" },
		"give no others":      func(c *oidc.Config) { c.RedirectURI = "http://127.0.0.1:8000"; c.Ports = []int{1} },
		`port "99999"`:        func(c *oidc.Config) { c.RedirectURI = "http://127.0.0.1:99999" },
		"port 70000":          func(c *oidc.Config) { c.Ports = []int{70000} },
		"negative":            func(c *oidc.Config) { c.LoginTimeout = -time.Second },
	} {
		config := good
		change(&config)
		if _, err := oidc.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestFilesOfTheConfiguration(t *testing.T) {
	p := oidctest.Start(t, start)
	missing := filepath.Join(t.TempDir(), "missing")
	empty := filepath.Join(t.TempDir(), "empty")
	testkit.Must(t, os.WriteFile(empty, nil, 0o600))
	for want, change := range map[string]func(*oidc.Config){
		"secret of the client": func(c *oidc.Config) { c.ClientSecretFile = missing },
		"no such file":         func(c *oidc.Config) { c.CAFile = missing },
		"has no certificate":   func(c *oidc.Config) { c.CAFile = empty },
		"by --ca-file":         func(c *oidc.Config) { c.CAFile = "" },
	} {
		term := &terminal{}
		wantError(t, obtain(t, newSource(t, p, change), term, nil, true).err, "outage", want)
		if len(term.opened) != 0 {
			t.Error("a browser was opened")
		}
	}
}

func TestDiscoveryThatIsRefused(t *testing.T) {
	set := func(name string, value any) func(map[string]any) {
		return func(d map[string]any) { d[name] = value }
	}
	for name, test := range map[string]struct {
		document func(map[string]any)
		want     string
	}{
		"another issuer":      {set("issuer", "https://evil.example"), "https://evil.example"},
		"a slash more":        {func(d map[string]any) { d["issuer"] = d["issuer"].(string) + "/" }, "exactly"},
		"no token endpoint":   {set("token_endpoint", ""), "no token_endpoint"},
		"no keys":             {set("jwks_uri", nil), "no jwks_uri"},
		"plain http":          {set("token_endpoint", "http://login.example.com/token"), "not https"},
		"keys by http":        {set("jwks_uri", "http://login.example.com/keys"), "not https"},
		"a file":              {set("authorization_endpoint", "file:///etc/passwd"), "not a valid address"},
		"a name and password": {set("token_endpoint", "https://a:b@example.com/"), "not a valid address"},
		"a script":            {set("authorization_endpoint", "javascript:alert(1)"), "not a valid address"},
		"no signatures":       {set("id_token_signing_alg_values_supported", []string{"none", "HS256"}), "no accepted algorithm"},
		"another form":        {set("scopes_supported", "openid"), "form"},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			p.Behave(oidctest.Behavior{Document: test.document})
			term := &terminal{}
			wantError(t, obtain(t, newSource(t, p), term, nil, true).err, "outage", test.want)
			if len(term.opened) != 0 || p.Requests("/token") != 0 {
				t.Error("it goes on")
			}
		})
	}
}

// Redirects of documents are followed on the same host, and not without end.
func TestRedirectsOfDocuments(t *testing.T) {
	for hops, want := range map[int]string{3: "", 9: "again and again"} {
		p := oidctest.Start(t, start)
		p.Behave(oidctest.Behavior{Take: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/keys" || p.Requests("/keys") > hops {
				return false
			}
			http.Redirect(w, r, "/keys", http.StatusFound)
			return true
		}})
		term, _ := person(t, p.Browser(t, "alice"))
		g := obtain(t, newSource(t, p), term, nil, true)
		if want == "" && g.err != nil || want != "" && (g.err == nil || !strings.Contains(g.err.Error(), want)) {
			t.Errorf("%d redirects: %v", hops, g.err)
		}
	}
}

// The scope for refresh tokens is not requested of a provider that does not have it: some refuse it.
func TestScopes(t *testing.T) {
	for _, test := range []struct {
		supported any
		want      string
		notices   int
	}{{[]string{"openid", "email"}, "scope=openid&", 2}, {nil, "scope=openid+offline_access&", 1}} {
		p := oidctest.Start(t, start)
		p.Behave(oidctest.Behavior{Document: func(d map[string]any) { d["scopes_supported"] = test.supported }})
		term, _ := person(t, p.Browser(t, "alice"))
		if g := obtain(t, newSource(t, p), term, nil, true); g.err != nil {
			t.Fatal(g.err)
		}
		if !strings.Contains(term.opened[0], test.want) {
			t.Errorf("requested %s, want %s", term.opened[0], test.want)
		}
		if len(term.notices) != test.notices || test.notices == 2 && !strings.Contains(term.notices[1], "does not offer the scope offline_access") {
			t.Errorf("notices %q", term.notices)
		}
	}
}

// A login without a refresh token gives one notice of what to do, and not one for each login; by hand, each time.
func TestNoticeOfNoRefreshToken(t *testing.T) {
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Tokens: func(answer map[string]any) { delete(answer, "refresh_token") }})
	for name, test := range map[string]struct {
		change func(*oidc.Config)
		want   string
	}{
		"no prompt":          {func(*oidc.Config) {}, "--parameter prompt=consent"},
		"prompt for consent": {func(c *oidc.Config) { c.Parameters = map[string]string{"prompt": "consent"} }, `: have the provider allow it (offline access) for the client "kubernetes"`},
	} {
		screen, _ := person(t, p.Browser(t, "alice"))
		folder := filepath.Join(t.TempDir(), "kept")
		provider := &credential.Provider{Folder: folder, Now: p.Now, Terminal: screen, Caller: credential.Caller{PID: 1000}}
		info := credential.ExecInfo{APIVersion: credential.V1, Interactive: true, FromClient: true}
		told := func() int { return strings.Count(strings.Join(screen.notices, "\n"), "no refresh token") }
		log := func(serve func() error) {
			t.Helper()
			testkit.Must(t, serve())
		}
		clients := func() error { _, err := provider.Serve(t.Context(), newSource(t, p, test.change), info); return err }
		log(clients)
		if got := strings.Join(screen.notices, "\n"); told() != 1 || !strings.Contains(got, test.want) || !strings.Contains(got, "at 20") {
			t.Errorf("%s: notices %q", name, screen.notices)
		}
		p.Advance(time.Hour)
		log(clients)
		if told() != 1 || len(screen.opened) != 2 {
			t.Errorf("%s: %d notices in %d logins of a client", name, told(), len(screen.opened))
		}
		log(func() error {
			_, err := provider.Renew(t.Context(), newSource(t, p, test.change), credential.ExecInfo{APIVersion: credential.V1, Interactive: true})
			return err
		})
		if told() != 2 {
			t.Errorf("%s: %d notices, once by hand", name, told())
		}
	}
}
