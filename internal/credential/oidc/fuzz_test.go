package oidc

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential/oidc/settings"
)

// Whatever a browser, or what pretends to be one, sends: at most one answer is taken, only with the right state, and no page has
// foreign markup.
func FuzzCallback(f *testing.F) {
	f.Add("GET", "127.0.0.1:8000", "/callback", "state=right&code=c&iss=https%3A%2F%2Flogin.example.com")
	f.Add("GET", "127.0.0.1:8000", "/callback", "state=right&error=access_denied&error_description=%3Cb%3E%1b[2J")
	f.Add("GET", "127.0.0.1:8000", "/callback", "state=wrong&code=c")
	f.Add("GET", "127.0.0.1:8000", "/callback", "state=right&state=right&code=c;code=d&%zz")
	f.Add("POST", "evil.example", "//callback/../callback", "")
	f.Fuzz(func(t *testing.T, method, host, path, query string) {
		c := newCallback("127.0.0.1:8000", "/callback", "right", "https://login.example.com", false)
		for i := range 2 {
			request := &http.Request{Method: method, Host: host, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
			request = request.WithContext(t.Context())
			recorder := httptest.NewRecorder()
			served := make(chan struct{})
			go func() {
				defer close(served)
				c.ServeHTTP(recorder, request)
			}()
			select {
			case came := <-c.arrivals:
				values, _ := url.ParseQuery(query)
				if i > 0 || method != http.MethodGet || host != "127.0.0.1:8000" || values.Get("state") != "right" || (came.code == "") == (came.refused == nil) {
					t.Errorf("taken: %+v", came)
				}
				if came.refused != nil {
					came.outcome <- came.refused
				} else {
					came.outcome <- nil
				}
				<-served
			case <-served:
				if recorder.Code == http.StatusOK {
					t.Error("an answer that was not taken gets 200")
				}
			}
			body := recorder.Body.String()
			_, text, found := strings.Cut(body, "<p>")
			text, _, _ = strings.Cut(text, "\n</html>")
			if !found || strings.ContainsAny(text, "<>\x1b\x00") {
				t.Errorf("markup in the text %q", text)
			}
		}
	})
}

// Whatever a provider answers is an error or something that can be worked with.
func FuzzProvider(f *testing.F) {
	f.Add([]byte(`{"token_type":"Bearer","access_token":"a.e30.c","expires_in":"60","id_token":"x.y.z","refresh_token":"r"}`))
	f.Add([]byte(`{"error":"invalid_grant","error_description":"secret \u001b[2J"}`))
	f.Add([]byte(`{"device_code":"d","user_code":"u","verification_uri":"https://example.com/","expires_in":1e300,"interval":-5}`))
	f.Add([]byte(`{"issuer":"https://login.example.com","token_endpoint":"https://e.com/t","jwks_uri":"https://e.com/k"}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"oct","k":"AAAA"},7]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		const issuer = "https://login.example.com"
		if a, err := parseAnswer(body); err == nil {
			for _, token := range []string{a.idToken.Reveal(), a.accessToken.Reveal(), a.refreshToken.Reveal()} {
				if strings.ContainsAny(token, " \r\n\x00") {
					t.Errorf("token %q", token)
				}
			}
			a.asked = time.Unix(0, 0)
			if a.lifetime < 0 || a.accessExpires().Before(time.Unix(0, 0)) && !a.accessExpires().IsZero() {
				t.Errorf("lifetime %s, end %s", a.lifetime, a.accessExpires())
			}
		}
		if r, ok := parseRefusal(body, "secret"); ok && (r.code == "" || strings.Contains(r.Error(), "secret") || strings.ContainsAny(r.description, "\x1b\n")) {
			t.Errorf("refusal %q", r)
		}
		p := &session{Config: Config{Settings: settings.Settings{Issuer: issuer}}}
		if d, err := p.parseDeviceCode(body); err == nil && (!strings.HasPrefix(d.uri, "https://") && !strings.HasPrefix(d.uri, "HTTPS://") || d.interval < time.Second || d.interval > longestInterval || d.lifetime <= 0) {
			t.Errorf("device code %+v", d)
		}
		if d, err := parseDocument(issuer, body); err == nil && (d.Issuer != issuer || d.Token == "" || d.Keys == "" || len(d.Algorithms) == 0) {
			t.Errorf("document %+v", d)
		}
		keys, _ := parseKeys(body)
		for _, key := range keys {
			if !key.IsPublic() {
				t.Error("a private or shared key")
			}
		}
	})
}
