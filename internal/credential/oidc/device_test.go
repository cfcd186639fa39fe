package oidc_test

import (
	"context"
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

// deviceLogin logs in by device code. before is called before each wait, with its number from 1 on; the clock then moves on.
func deviceLogin(t *testing.T, p *oidctest.Provider, flow settings.Flow, before func(n int), change ...func(*oidc.Config)) (got, *terminal, []time.Duration) {
	t.Helper()
	var waits []time.Duration
	s := newSource(t, p, append(change, func(c *oidc.Config) {
		c.Flow = flow
		c.Wait = func(ctx context.Context, d time.Duration) error {
			waits = append(waits, d)
			before(len(waits))
			p.Advance(d)
			return ctx.Err()
		}
	})...)
	term := &terminal{}
	return obtain(t, s, term, nil, true), term, waits
}

// enter enters the code that the first device was given.
func enter(t *testing.T, p *oidctest.Provider) {
	t.Helper()
	testkit.Expect(t, p.Browser(t, "alice").Enter("USER-000002"))
}

const second = time.Second

func TestLogInByDeviceCode(t *testing.T) {
	for _, flow := range []settings.Flow{settings.Device, settings.Auto} { // Auto, since this terminal has no browser
		p := oidctest.Start(t, start)
		g, term, waits := deviceLogin(t, p, flow, func(n int) {
			if n == 3 {
				enter(t, p)
			}
		})
		if g.err != nil {
			t.Fatal(g.err)
		}
		if c := claims(t, g.credential.Token); c["sub"] != "alice" {
			t.Errorf("claims %v", c)
		}
		if diff := cmp.Diff([]time.Duration{5 * second, 5 * second, 5 * second}, waits); diff != "" {
			t.Error(diff)
		}
		if len(term.notices) != 2 || !strings.Contains(term.notices[0], p.Issuer+"/activate") || !strings.Contains(term.notices[0], "USER-000002") {
			t.Errorf("notices %q", term.notices)
		}
		p.Advance(time.Hour)
		if again := obtain(t, newSource(t, p), &terminal{}, g.state, false); again.err != nil {
			t.Errorf("refresh: %v", again.err)
		}
	}
}

// This machine's clock runs faster than the provider's, so that the first question comes too soon.
func TestSlowDown(t *testing.T) {
	p := oidctest.Start(t, start)
	g, _, waits := deviceLogin(t, p, settings.Device, func(n int) {
		switch n {
		case 1:
			p.Advance(-3 * second)
		case 3:
			enter(t, p)
		}
	})
	if g.err != nil {
		t.Fatal(g.err)
	}
	if diff := cmp.Diff([]time.Duration{5 * second, 10 * second, 10 * second}, waits); diff != "" {
		t.Error(diff)
	}
}

func TestADeviceWaitsOutAnOutage(t *testing.T) {
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Take: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" || p.Requests("/token") > 3 {
			return false
		}
		if p.Requests("/token") == 2 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	}})
	g, _, waits := deviceLogin(t, p, settings.Device, func(n int) {
		if n == 1 {
			enter(t, p)
		}
	})
	if g.err != nil {
		t.Fatal(g.err)
	}
	if diff := cmp.Diff([]time.Duration{5 * second, 10 * second, 20 * second, 40 * second}, waits); diff != "" {
		t.Error(diff)
	}
}

func TestDeviceCodesThatEnd(t *testing.T) {
	p := oidctest.Start(t, start)
	g, _, waits := deviceLogin(t, p, settings.Device, func(int) {})
	wantError(t, g.err, "needs person", "in time")
	if want := int(10 * time.Minute / (5 * second)); len(waits) != want {
		t.Errorf("%d requests in ten minutes, want %d", len(waits), want)
	}

	p = oidctest.Start(t, start)
	g, _, waits = deviceLogin(t, p, settings.Device, func(int) {}, func(c *oidc.Config) { c.LoginTimeout = 12 * second })
	wantError(t, g.err, "needs person", "in time") // the time of the person, which is less than the provider's
	if diff := cmp.Diff([]time.Duration{5 * second, 5 * second, 2 * second}, waits); diff != "" {
		t.Error(diff)
	}

	p = oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Deny: true})
	g, _, _ = deviceLogin(t, p, settings.Device, func(n int) {
		if n == 1 {
			enter(t, p)
		}
	})
	wantError(t, g.err, "refused", "access_denied")

	p = oidctest.Start(t, start)
	g, _, _ = deviceLogin(t, p, settings.Device, func(n int) { p.Advance(10 * time.Minute) })
	wantError(t, g.err, "needs person", "expired_token")

	p = oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Document: func(d map[string]any) { delete(d, "device_authorization_endpoint") }})
	g, _, _ = deviceLogin(t, p, settings.Device, func(int) {})
	wantError(t, g.err, "refused", "no device codes")
}

// The provider's text cannot move the cursor, and its address is https.
func TestWhatADeviceIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		field string
		value any
		want  string
	}{
		"another scheme":   {"verification_uri", "file:///etc/passwd", "verification_uri"},
		"plain http":       {"verification_uri", "http://login.example.com", "verification_uri"},
		"no address":       {"verification_uri", nil, "verification_uri"},
		"no code":          {"user_code", nil, "lacks"},
		"no device code":   {"device_code", "", "lacks"},
		"no end":           {"expires_in", nil, "lacks"},
		"no number":        {"interval", true, "JSON"},
		"an endless name":  {"verification_uri", "https://example.com/" + strings.Repeat("a", 400), "shown"},
		"not even an JSON": {"user_code", []int{1}, "JSON"},
	} {
		p := oidctest.Start(t, start)
		p.Behave(oidctest.Behavior{Device: func(d map[string]any) { d[test.field] = test.value }})
		g, term, _ := deviceLogin(t, p, settings.Device, func(int) {})
		if g.err == nil || !strings.Contains(g.err.Error(), test.want) || len(term.notices) != 0 {
			t.Errorf("%s: %v, notices %q", name, g.err, term.notices)
		}
	}
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Device: func(d map[string]any) {
		d["user_code"] = "A\x1b[2J\u202eB\nC"
		d["verification_uri_complete"] = "javascript:alert(1)"
	}})
	_, term, _ := deviceLogin(t, p, settings.Device, func(n int) { p.Advance(time.Hour) })
	if len(term.notices) != 1 || !strings.Contains(term.notices[0], "A�[2J�B C") {
		t.Errorf("notices %q", term.notices)
	}
}
