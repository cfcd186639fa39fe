package oidc_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/test/testkit"
)

func TestLogInByBrowser(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p, func(c *oidc.Config) {
		c.Scopes = []string{"groups"}
		c.Parameters = map[string]string{"prompt": "consent"}
	})
	term, pages := person(t, p.Browser(t, "alice"))
	g := obtain(t, s, term, nil, true)
	if g.err != nil {
		t.Fatal(g.err)
	}
	c := claims(t, g.credential.Token)
	if c["sub"] != "alice" || c["iss"] != p.Issuer || c["aud"] != oidctest.ClientID {
		t.Errorf("claims %v", c)
	}
	if want := start.Add(5 * time.Minute); !g.credential.Expires.Equal(want) {
		t.Errorf("expires %s, want %s", g.credential.Expires, want)
	}
	if !strings.Contains(string(g.state), `"refreshToken":"refresh-`) {
		t.Errorf("no refresh token is kept")
	}

	page := <-pages
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "You are logged in") {
		t.Errorf("the browser shows %d %s", page.Status, page.Body)
	}
	for _, from := range []string{"src=", "href=", "<script", "url(", "@import"} {
		if strings.Contains(page.Body, from) {
			t.Errorf("the page is not self-contained: it has %q", from)
		}
	}
	if got := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") {
		t.Errorf("content security policy %q", got)
	}
	if got := page.Header.Get("Referrer-Policy"); got != "no-referrer" {
		t.Errorf("referrer policy %q: the address has the code", got)
	}
	if conn, err := net.Dial("tcp", page.URL.Host); err == nil {
		_ = conn.Close()
		t.Error("it still listens after the login")
	}

	asked, err := url.Parse(term.opened[0])
	testkit.Must(t, err)
	query := asked.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || back.Path != "/callback" {
		t.Errorf("redirect URI %s, %v", back, err)
	}
	if got := query.Get("scope"); got != "openid offline_access groups" {
		t.Errorf("scope %q", got)
	}
	if got := query.Get("prompt"); got != "consent" {
		t.Errorf("prompt %q", got)
	}
	if len(term.notices) != 1 || !strings.Contains(term.notices[0], term.opened[0]) {
		t.Errorf("notices %q: they must have the address, for a browser that does not open", term.notices)
	}
}

func TestEveryLoginIsUnlikeAllOthers(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	seen := map[string]bool{}
	for range 3 {
		term, _ := person(t, p.Browser(t, "alice"))
		if g := obtain(t, s, term, nil, true); g.err != nil {
			t.Fatal(g.err)
		}
		asked := testkit.Need(url.Parse(term.opened[0]))(t)
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			text := asked.Query().Get(name)
			if len(text) < 43 || seen[text] {
				t.Errorf("%s %q is short, or was there before", name, text)
			}
			seen[text] = true
		}
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	for name, test := range map[string]struct {
		redirect func(map[string]string)
		page     string
	}{
		"another state":    {func(q map[string]string) { q["state"] = "another" }, "does not belong to the login"},
		"no state":         {func(q map[string]string) { delete(q, "state") }, "does not belong to the login"},
		"another issuer":   {func(q map[string]string) { q["iss"] = "https://evil.example" }, "from another provider"},
		"no issuer":        {func(q map[string]string) { delete(q, "iss") }, "from another provider"},
		"no code":          {func(q map[string]string) { delete(q, "code") }, "neither exactly one code"},
		"code and error":   {func(q map[string]string) { q["error"] = "access_denied" }, "neither exactly one code"},
		"denied elsewhere": {func(q map[string]string) { delete(q, "code"); q["error"] = "access_denied"; q["state"] = "x" }, "does not belong"},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			browser := p.Browser(t, "alice")
			p.Behave(oidctest.Behavior{Redirect: test.redirect})
			var bad oidctest.Page
			good, pages := person(t, browser)
			// The person is first sent back with the bad answer, and then with the right one: the login must still wait for it.
			term := &terminal{open: func(address string) error {
				var err error
				if bad, err = browser.Open(address); err != nil {
					return err
				}
				p.Behave(oidctest.Behavior{})
				return good.open(address)
			}}
			g := obtain(t, newSource(t, p), term, nil, true)
			if g.err != nil {
				t.Fatal(g.err)
			}
			if bad.Status != http.StatusBadRequest || !strings.Contains(bad.Body, test.page) || strings.Contains(bad.Body, "You are logged in") {
				t.Errorf("the bad answer gets %d %s", bad.Status, bad.Body)
			}
			if page := <-pages; !strings.Contains(page.Body, "You are logged in") {
				t.Errorf("the good answer gets %s", page.Body)
			}
		})
	}
}

func TestWhatElseComesToTheCallback(t *testing.T) {
	p := oidctest.Start(t, start)
	browser := p.Browser(t, "alice")
	good, _ := person(t, browser)
	term := &terminal{open: func(address string) error {
		asked, err := url.Parse(address)
		if err != nil {
			return err
		}
		query := asked.Query()
		back := query.Get("redirect_uri")
		answer := back + "?" + url.Values{"state": {query.Get("state")}, "code": {"stolen"}, "iss": {p.Issuer}}.Encode()
		for _, test := range []struct {
			what, method, address, host string
			status                      int
		}{
			{"another path", "GET", strings.Replace(answer, "/callback", "/favicon.ico", 1), "", http.StatusNotFound},
			{"a preview", "HEAD", answer, "", http.StatusMethodNotAllowed},
			{"a form", "POST", answer, "", http.StatusMethodNotAllowed},
			{"another name for this machine", "GET", answer, "evil.example:80", http.StatusMisdirectedRequest},
			{"two codes", "GET", answer + "&code=other", "", http.StatusBadRequest},
			{"two states", "GET", answer + "&state=other", "", http.StatusBadRequest},
			{"an invalid query", "GET", answer + "&%zz", "", http.StatusBadRequest},
		} {
			request, err := http.NewRequest(test.method, test.address, nil)
			if err != nil {
				return err
			}
			request.Host = test.host
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			_ = response.Body.Close()
			if response.StatusCode != test.status {
				t.Errorf("%s: status %d, want %d", test.what, response.StatusCode, test.status)
			}
		}
		return good.open(address)
	}}
	if g := obtain(t, newSource(t, p), term, nil, true); g.err != nil {
		t.Fatal(g.err)
	}
}

// The second of two right answers comes while the first is worked on.
func TestOneAnswerIsTaken(t *testing.T) {
	p := oidctest.Start(t, start)
	browser := p.Browser(t, "alice")
	second := make(chan oidctest.Page, 1)
	var address string
	p.Behave(oidctest.Behavior{Take: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			page, err := browser.Open(address)
			testkit.Expect(t, err)
			second <- page
		}
		return false
	}})
	good, pages := person(t, browser)
	term := &terminal{open: func(a string) error { address = a; return good.open(a) }}
	if g := obtain(t, newSource(t, p), term, nil, true); g.err != nil {
		t.Fatal(g.err)
	}
	if page := <-second; page.Status != http.StatusConflict || !strings.Contains(page.Body, "taken already") {
		t.Errorf("the second answer gets %d %s", page.Status, page.Body)
	}
	if page := <-pages; !strings.Contains(page.Body, "You are logged in") {
		t.Errorf("the first answer gets %s", page.Body)
	}
	if n := p.Requests("/token"); n != 1 {
		t.Errorf("%d codes were redeemed", n)
	}
}

func TestThePersonSaysNo(t *testing.T) {
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Deny: true})
	term, pages := person(t, p.Browser(t, "alice"))
	g := obtain(t, newSource(t, p), term, nil, true)
	wantError(t, g.err, "refused", "access_denied")
	page := <-pages
	if !strings.Contains(page.Body, "You are not logged in") || !strings.Contains(page.Body, "&lt;b&gt;not&lt;/b&gt; today") {
		t.Errorf("the browser shows %s", page.Body)
	}
}

func TestNobodyLogsIn(t *testing.T) {
	p := oidctest.Start(t, start)
	var waited time.Duration
	s := newSource(t, p, func(c *oidc.Config) {
		c.LoginTimeout = 3 * time.Minute
		c.Wait = func(_ context.Context, d time.Duration) error { waited = d; return nil }
	})
	g := obtain(t, s, &terminal{open: func(string) error { return nil }}, nil, true)
	wantError(t, g.err, "needs person", "within 3m0s")
	if waited != 3*time.Minute {
		t.Errorf("waited %s", waited)
	}
}

func TestTheClientGoesAway(t *testing.T) {
	p := oidctest.Start(t, start)
	ctx, cancel := context.WithCancel(t.Context())
	g := obtainIn(ctx, t, newSource(t, p), &terminal{open: func(string) error { cancel(); return nil }}, nil, true)
	if !errors.Is(g.err, context.Canceled) {
		t.Errorf("error %v", g.err)
	}
}

func TestWhereItListens(t *testing.T) {
	p := oidctest.Start(t, start)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer func() { _ = busy.Close() }()
	busyPort := busy.Addr().(*net.TCPAddr).Port

	redirectURI := func(change func(*oidc.Config)) (string, error) {
		term, _ := person(t, p.Browser(t, "alice"))
		g := obtain(t, newSource(t, p, change), term, nil, true)
		if g.err != nil {
			return "", g.err
		}
		asked, err := url.Parse(term.opened[0])
		return asked.Query().Get("redirect_uri"), err
	}

	if _, err := redirectURI(func(c *oidc.Config) { c.Ports = []int{busyPort} }); err == nil || !strings.Contains(err.Error(), strconv.Itoa(busyPort)) {
		t.Errorf("only a busy port: %v", err)
	}
	got, err := redirectURI(func(c *oidc.Config) { c.Ports = []int{busyPort, 0} })
	if err != nil || strings.Contains(got, strconv.Itoa(busyPort)) {
		t.Errorf("a busy port first: %s, %v", got, err)
	}
	// As registered for other programs: by name, and without a path.
	got, err = redirectURI(func(c *oidc.Config) { c.RedirectURI = "http://localhost" })
	if u, parseErr := url.Parse(got); err != nil || parseErr != nil || u.Hostname() != "localhost" || u.Path != "" {
		t.Errorf("localhost: %s, %v", got, err)
	}
}

// A program on the other address of localhost would get the code.
func TestLocalhostIsWhollyOurs(t *testing.T) {
	other, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("needs IPv6 on loopback: %v", err)
	}
	defer func() { _ = other.Close() }()
	p := oidctest.Start(t, start)
	port := other.Addr().(*net.TCPAddr).Port
	term, _ := person(t, p.Browser(t, "alice"))
	g := obtain(t, newSource(t, p, func(c *oidc.Config) { c.RedirectURI = "http://localhost:" + strconv.Itoa(port) }), term, nil, true)
	if g.err == nil || len(term.opened) != 0 {
		t.Errorf("it logs in with port %d of [::1] in other hands: %v", port, g.err)
	}
}

func TestNoBrowserAndNoDeviceCodes(t *testing.T) {
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Document: func(d map[string]any) { delete(d, "device_authorization_endpoint") }})
	good, _ := person(t, p.Browser(t, "alice"))
	// No browser can be opened, and the person opens the address themselves.
	term := &terminal{open: func(address string) error {
		if err := good.open(address); err != nil {
			return err
		}
		return errors.New("no display")
	}}
	g := obtain(t, newSource(t, p), term, nil, true)
	if g.err != nil {
		t.Fatal(g.err)
	}
	if diff := cmp.Diff(1, len(term.notices)); diff != "" || !strings.Contains(term.notices[0], "open this address") {
		t.Errorf("notices %q", term.notices)
	}
}
