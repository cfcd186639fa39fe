package oidc_test

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential/oidc/oidctest"
	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// reply is an answer of a token endpoint.
type reply struct {
	status int
	body   string
}

// Providers answer devices with statuses and fields of their own. docs/howto/kubectl-credentials.md has the sources.
func TestDeviceCodesOfProviders(t *testing.T) {
	const pending, slow = `{"error":"authorization_pending","error_description":"wait"}`, `{"error":"slow_down"}`
	google := func(d map[string]any) {
		d["verification_url"] = d["verification_uri"]
		delete(d, "verification_uri")
		delete(d, "verification_uri_complete")
	}
	entra := func(d map[string]any) {
		d["message"] = "To sign in, use a web browser"
		delete(d, "verification_uri_complete")
	}
	for name, test := range map[string]struct {
		device  func(map[string]any)
		replies []reply
		waits   []time.Duration
		refused string
	}{
		"Keycloak":           {replies: []reply{{400, pending}, {400, slow}}, waits: []time.Duration{5 * second, 5 * second, 10 * second}},
		"Okta":               {replies: []reply{{400, pending}, {400, slow}}, waits: []time.Duration{5 * second, 5 * second, 10 * second}},
		"Entra ID":           {entra, []reply{{400, `{"error":"authorization_pending","error_codes":[70016],"timestamp":"2026-03-01 12:00:00Z"}`}}, []time.Duration{5 * second, 5 * second}, ""},
		"Entra ID, declined": {entra, []reply{{400, `{"error":"authorization_declined","error_description":"AADSTS70018"}`}}, []time.Duration{5 * second}, "authorization_declined"},
		"Google":             {google, []reply{{428, pending}, {403, slow}}, []time.Duration{5 * second, 5 * second, 10 * second}, ""},
		"Auth0":              {replies: []reply{{403, pending}, {429, slow}}, waits: []time.Duration{5 * second, 5 * second, 10 * second}},
		"Dex":                {replies: []reply{{401, pending}, {401, slow}}, waits: []time.Duration{5 * second, 5 * second, 10 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			left := slices.Clone(test.replies)
			p.Behave(oidctest.Behavior{Device: test.device, Take: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/token" || len(left) == 0 {
					return false
				}
				w.WriteHeader(left[0].status)
				_, _ = io.WriteString(w, left[0].body)
				left = left[1:]
				return true
			}})
			g, term, waits := deviceLogin(t, p, settings.Device, func(n int) {
				if n == 1 {
					enter(t, p)
				}
			})
			if test.refused != "" {
				wantError(t, g.err, "refused", test.refused)
			} else if g.err != nil {
				t.Fatal(g.err)
			}
			if diff := cmp.Diff(test.waits, waits); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(term.notices[0], p.Issuer+"/activate") {
				t.Errorf("notices %q", term.notices)
			}
		})
	}
}

// Keycloak and Okta list the scope offline_access, and refuse it to clients and users who may not have it, at each of three places.
func TestOfflineAccessIsRefused(t *testing.T) {
	offline := func(scope string) bool { return slices.Contains(strings.Fields(scope), "offline_access") }
	refuse := func(w http.ResponseWriter, body string) bool {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, body)
		return true
	}
	for name, test := range map[string]struct {
		flow settings.Flow
		take func(p *oidctest.Provider) func(http.ResponseWriter, *http.Request) bool
	}{
		"the browser comes back with it": {settings.Browser, func(p *oidctest.Provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				query := r.URL.Query()
				if r.URL.Path != "/authorize" || !offline(query.Get("scope")) {
					return false
				}
				http.Redirect(w, r, query.Get("redirect_uri")+"?"+url.Values{
					"error": {"invalid_scope"}, "error_description": {"Invalid scopes: openid offline_access"}, "state": {query.Get("state")}, "iss": {p.Issuer},
				}.Encode(), http.StatusFound)
				return true
			}
		}},
		"for the code": {settings.Browser, func(p *oidctest.Provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				return r.URL.Path == "/token" && p.Requests("/token") == 1 && refuse(w, `{"error":"not_allowed","error_description":"Offline tokens not allowed for the user or client"}`)
			}
		}},
		"for a device code": {settings.Device, func(*oidctest.Provider) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				return r.URL.Path == "/device" && offline(r.PostFormValue("scope")) && refuse(w, `{"error":"invalid_scope"}`)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.Start(t, start)
			p.Behave(oidctest.Behavior{Take: test.take(p)})
			term, _ := person(t, p.Browser(t, "alice"))
			var g got
			if test.flow == settings.Browser {
				g = obtain(t, newSource(t, p), term, nil, true)
			} else {
				g, term, _ = deviceLogin(t, p, test.flow, func(int) { enter(t, p) })
			}
			if g.err != nil {
				t.Fatal(g.err)
			}
			if claims(t, g.credential.Token)["sub"] != "alice" || !strings.Contains(strings.Join(term.notices, "\n"), "without offline_access") {
				t.Errorf("notices %q", term.notices)
			}
		})
	}

	// A scope that the user has named stays refused.
	p := oidctest.Start(t, start)
	p.Behave(oidctest.Behavior{Redirect: func(q map[string]string) { delete(q, "code"); q["error"] = "invalid_scope" }})
	term, _ := person(t, p.Browser(t, "alice"))
	g := obtain(t, newSource(t, p), term, nil, true)
	wantError(t, g.err, "refused", "invalid_scope")
	if len(term.opened) != 2 {
		t.Errorf("the browser was opened %d times", len(term.opened))
	}
}
