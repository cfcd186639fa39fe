package oidc_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/oidc"
	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
	"github.com/credence-id/credence/test/testkit"
)

func TestRefresh(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	seen := map[string]bool{string(g.state): true}
	for i := range 10 {
		p.Advance(time.Hour)
		nobody := &terminal{}
		g = obtain(t, s, nobody, g.state, i%2 == 0)
		if g.err != nil {
			t.Fatal(g.err)
		}
		if seen[string(g.state)] {
			t.Fatal("a refresh token is kept that was used")
		}
		seen[string(g.state)] = true
		if diff := cmp.Diff([]json.RawMessage{g.state}, g.kept); diff != "" {
			t.Error("the new refresh token was not kept at once")
		}
		if len(nobody.opened)+len(nobody.notices) != 0 {
			t.Error("the user was prompted")
		}
		if want := p.Now().Add(5 * time.Minute); !g.credential.Expires.Equal(want) {
			t.Errorf("expires %s, want %s", g.credential.Expires, want)
		}
	}
}

func TestARefreshTokenThatStays(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	p.Behave(oidctest.Behavior{Tokens: func(tokens map[string]any) { delete(tokens, "refresh_token") }})
	again := obtain(t, s, &terminal{}, g.state, false)
	if again.err != nil {
		t.Fatal(again.err)
	}
	if diff := cmp.Diff(string(g.state), string(again.state)); diff != "" || len(again.kept) != 0 {
		t.Error("the refresh token is not the one that was there")
	}
}

// The answer to a refresh cannot be verified: the next refresh token is stored all the same, and works later.
func TestABadAnswerDoesNotLoseTheRefreshToken(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	p.Behave(oidctest.Behavior{Claims: func(c map[string]any) { c["aud"] = "another client" }})
	bad := obtain(t, s, &terminal{}, g.state, true)
	wantError(t, bad.err, "outage", "audience")
	if len(bad.kept) != 1 || string(bad.kept[0]) != string(bad.state) || string(bad.state) == string(g.state) {
		t.Fatal("the new refresh token is lost")
	}
	p.Behave(oidctest.Behavior{})
	if again := obtain(t, s, &terminal{}, bad.state, false); again.err != nil {
		t.Error(again.err)
	}
}

func TestTheLoginIsOver(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	p.End()

	over := obtain(t, s, &terminal{}, g.state, false)
	wantError(t, over.err, "needs person", "invalid_grant")
	if string(over.state) != "null" {
		t.Errorf("a refresh token is kept that is of no use")
	}

	term, _ := person(t, p.Browser(t, "alice"))
	again := obtain(t, s, term, g.state, true)
	if again.err != nil {
		t.Fatal(again.err)
	}
	if len(term.opened) != 1 || string(again.state) == string(g.state) {
		t.Error("no new login")
	}

	p.Behave(oidctest.Behavior{Deny: true})
	p.End()
	term, _ = person(t, p.Browser(t, "alice"))
	denied := obtain(t, s, term, again.state, true)
	wantError(t, denied.err, "refused", "access_denied")
	if string(denied.state) != "null" {
		t.Errorf("a refresh token is kept that is of no use")
	}
}

// A refresh token with a repeated use ends the login; the description repeats it, and the error must not.
func TestAnUnknownRefreshToken(t *testing.T) {
	p := oidctest.Start(t, start)
	g := obtain(t, newSource(t, p), &terminal{}, json.RawMessage(`{"refreshToken":"refresh-999999"}`), false)
	wantError(t, g.err, "needs person", "[redacted]")
}

func TestNobodyMayBeAsked(t *testing.T) {
	p := oidctest.Start(t, start)
	for _, state := range []string{``, `null`, `{}`, `[1]`, `{"refreshToken":7}`} {
		term := &terminal{}
		g := obtain(t, newSource(t, p), term, json.RawMessage(state), false)
		wantError(t, g.err, "needs person", p.Issuer)
		if len(term.opened)+len(term.notices) != 0 || p.Requests("/.well-known/openid-configuration") != 0 {
			t.Errorf("state %s: the user was prompted", state)
		}
	}
}

// In an outage nothing is deleted, the user is not prompted, and the refresh token is not spent before tokens can be verified.
func TestOutages(t *testing.T) {
	const discovery, keys, token = "/.well-known/openid-configuration", "/keys", "/token"
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, do := range map[string]http.HandlerFunc{
		"500":                     answer(500, `{"error":"invalid_grant"}`),
		"503":                     answer(503, ``),
		"429":                     answer(429, `{"error":"invalid_grant"}`),
		"a portal's page":         answer(200, `<html>Accept the terms of this hotel</html>`),
		"a proxy's 403":           answer(403, `<html>blocked</html>`),
		"temporarily unavailable": answer(400, `{"error":"temporarily_unavailable"}`),
		"nothing":                 func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"half":                    answer(200, `{"issuer":`),
		"without end":             answer(200, `{"x":"`+strings.Repeat("a", 2<<20)+`"}`),
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusTemporaryRedirect)
		},
		"here, by GET": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusSeeOther) },
		"elsewhere by GET": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusSeeOther)
		},
	} {
		for _, path := range []string{discovery, keys, token} {
			t.Run(name+strings.ReplaceAll(path, "/", "_"), func(t *testing.T) {
				p := oidctest.Start(t, start)
				s := newSource(t, p)
				g := mustLogIn(t, p, s)
				p.Behave(oidctest.Behavior{Take: func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == path {
						do(w, r)
					}
					return r.URL.Path == path
				}})
				before := p.Requests(token)
				term := &terminal{}
				out := obtain(t, s, term, g.state, true)
				text := ""
				if name == "without end" {
					text = "longer than"
				}
				wantError(t, out.err, "outage", text)
				if len(term.opened) != 0 || out.state != nil || len(out.kept) != 0 {
					t.Error("the user was prompted, or a state was changed")
				}
				if path != token && p.Requests(token) != before {
					t.Error("the refresh token was spent for a token that cannot be verified")
				}
				p.Behave(oidctest.Behavior{})
				if again := obtain(t, s, &terminal{}, g.state, false); again.err != nil {
					t.Errorf("after the outage: %v", again.err)
				}
			})
		}
	}
}

func TestAProviderThatHangs(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	ctx, cancel := contextWithCancel(t)
	p.Behave(oidctest.Behavior{Take: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // the server does not see the client go before it has read all
		cancel()                           // the client's time is over while the provider thinks
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // an empty answer could reach the client before its connection is closed
	}})
	impatient := newSource(t, p, func(c *oidc.Config) { c.Wait = func(context.Context, time.Duration) error { return nil } })
	out := obtainIn(ctx, t, impatient, &terminal{}, g.state, true)
	wantError(t, out.err, "outage", "context canceled")
}

func TestARefreshWithoutIDToken(t *testing.T) {
	p := oidctest.Start(t, start)
	withAccess := func(c *oidc.Config) { c.Present = settings.AccessToken }
	for _, test := range []struct {
		change func(*oidc.Config)
		class  string
	}{{func(*oidc.Config) {}, "needs person"}, {withAccess, ""}} {
		p.Behave(oidctest.Behavior{})
		s := newSource(t, p, test.change)
		g := mustLogIn(t, p, s)
		p.Behave(oidctest.Behavior{Tokens: func(tokens map[string]any) { delete(tokens, "id_token") }})
		if out := obtain(t, s, &terminal{}, g.state, false); class(out.err) != test.class {
			t.Errorf("class %q, want %q: %v", class(out.err), test.class, out.err)
		}
	}
}

func TestARefreshForSomebodyElse(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	p.Behave(oidctest.Behavior{Claims: func(c map[string]any) { c["sub"] = "mallory" }})
	wantError(t, obtain(t, s, &terminal{}, g.state, false).err, "outage", `"mallory"`)
	p.Behave(oidctest.Behavior{})
	g = mustLogIn(t, p, s)
	p.Behave(oidctest.Behavior{Claims: func(c map[string]any) { c["nonce"] = "of another login" }})
	wantError(t, obtain(t, s, &terminal{}, g.state, false).err, "outage", "nonce")
}

func TestRevoke(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	g := mustLogIn(t, p, s)
	for range 2 { // a login that has ended is not an error (RFC 7009 section 2.2)
		testkit.Must(t, s.Revoke(t.Context(), g.state))
	}
	wantError(t, obtain(t, s, &terminal{}, g.state, false).err, "needs person", "invalid_grant")
	if err := s.Revoke(t.Context(), nil); err != nil || p.Requests("/revoke") != 2 {
		t.Errorf("without a state: %v, %d requests", err, p.Requests("/revoke"))
	}
	p.Behave(oidctest.Behavior{Document: func(d map[string]any) { delete(d, "revocation_endpoint") }})
	testkit.Expect(t, s.Revoke(t.Context(), g.state))
}

// A process that is interrupted while the provider replaces a refresh token stores the next one all the same.
func TestInterruptedRefresh(t *testing.T) {
	p := oidctest.Start(t, start)
	s := newSource(t, p)
	first := mustLogIn(t, p, s)
	ctx, interrupt := contextWithCancel(t)
	p.Behave(oidctest.Behavior{Take: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			interrupt()
		}
		return false
	}})
	g := obtainIn(ctx, t, s, &terminal{}, first.state, false)
	if len(g.kept) != 1 || g.err != nil && !errors.Is(g.err, context.Canceled) {
		t.Fatalf("%d states kept, %v", len(g.kept), g.err)
	}
	p.Behave(oidctest.Behavior{})
	if again := obtain(t, s, &terminal{}, g.kept[0], false); again.err != nil {
		t.Errorf("the stored state is of no use: %v", again.err)
	}
}
