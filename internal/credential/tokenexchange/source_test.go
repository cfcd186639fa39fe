package tokenexchange_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/tokenexchange"
	"github.com/credence-id/credence/internal/credential/tokenexchange/https"
	"github.com/credence-id/credence/internal/tokenendpoint"
	"github.com/credence-id/credence/test/testkit"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

var subjectToken = jwt(fmt.Sprintf(`{"iss":"https://issuer","sub":"system:serviceaccount:a:b","exp":%d}`, noon.Add(time.Hour).Unix()))

// server is a token endpoint. It keeps what it was sent.
type server struct {
	*httptest.Server
	t      *testing.T
	status int
	answer string
	header http.Header
	forms  []url.Values
	basic  [2]string
}

func newServer(t *testing.T) *server {
	s := &server{t: t, status: http.StatusOK, answer: `{"access_token":"new-token","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":600}`}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.URL.RawQuery != "" {
			t.Errorf("request %s %s, %s, %v", r.Method, r.URL, r.Header.Get("Content-Type"), err)
		}
		s.forms = append(s.forms, r.PostForm)
		s.basic[0], s.basic[1], _ = r.BasicAuth()
		for name := range s.header {
			w.Header().Set(name, s.header.Get(name))
		}
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.answer))
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s
}

func put(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (s *server) source() *tokenexchange.Source {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &tokenexchange.Source{
		Endpoint: s.URL + "/token", SubjectTokenFile: put(s.t, "subject", subjectToken+"\n"), CAFile: put(s.t, "ca", string(ca)),
		Poster: https.Poster{}, Now: func() time.Time { return noon },
	}
}

func obtain(t *testing.T, source *tokenexchange.Source) (credential.Credential, error) {
	t.Helper()
	got, state, err := source.Obtain(t.Context(), credential.Request{})
	if state != nil {
		t.Errorf("state %s", state)
	}
	if err != nil && (!got.Token.IsZero() || strings.Contains(err.Error(), subjectToken) || strings.Contains(err.Error(), "geheim")) {
		t.Errorf("with a token, or a secret in the error: %v", err)
	}
	return got, err
}

func TestExchange(t *testing.T) {
	const grant = "urn:ietf:params:oauth:grant-type:token-exchange"
	cases := []struct {
		name  string
		with  func(*tokenexchange.Source)
		form  url.Values
		basic [2]string
	}{
		{name: "least", with: func(*tokenexchange.Source) {},
			form: url.Values{"subject_token_type": {tokenendpoint.JWT}}},
		{name: "everything", with: func(s *tokenexchange.Source) {
			s.SubjectTokenType, s.RequestedTokenType = tokenendpoint.IDToken, tokenendpoint.AccessToken
			s.Resources, s.Audiences, s.Scopes = []string{"https://a/", "urn:b"}, []string{"x", "y"}, []string{"openid", "groups"}
			s.ClientID = "client"
		}, form: url.Values{"subject_token_type": {tokenendpoint.IDToken}, "requested_token_type": {tokenendpoint.AccessToken},
			"resource": {"https://a/", "urn:b"}, "audience": {"x", "y"}, "scope": {"openid groups"}, "client_id": {"client"}}},
		{name: "basic", with: func(s *tokenexchange.Source) {
			s.Authentication, s.ClientID, s.ClientSecretFile = tokenexchange.Basic, "a:b c", put(t, "secret", "geheim:%+\n")
		}, form: url.Values{"subject_token_type": {tokenendpoint.JWT}}, basic: [2]string{"a%3Ab+c", "geheim%3A%25%2B"}},
		{name: "post", with: func(s *tokenexchange.Source) {
			s.Authentication, s.ClientID, s.ClientSecretFile = tokenexchange.Post, "client", put(t, "secret", "geheim")
		}, form: url.Values{"subject_token_type": {tokenendpoint.JWT}, "client_id": {"client"}, "client_secret": {"geheim"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(t)
			source := server.source()
			c.with(source)
			got, err := obtain(t, source)
			if err != nil || got.Token.Reveal() != "new-token" || !got.Expires.Equal(noon.Add(10*time.Minute)) {
				t.Fatalf("got %q, expires %s, %v", got.Token.Reveal(), got.Expires, err)
			}
			c.form.Set("grant_type", grant)
			c.form.Set("subject_token", subjectToken)
			if diff := cmp.Diff([]url.Values{c.form}, server.forms); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if server.basic != c.basic {
				t.Errorf("authenticated as %q, want %q", server.basic, c.basic)
			}
		})
	}
}

func TestExpiryOfTheAnswer(t *testing.T) {
	own := func(at time.Time) string { return jwt(fmt.Sprintf(`{"exp":%d}`, at.Unix())) }
	cases := []struct {
		name, token, expiresIn string
		want                   time.Time
	}{
		{"number", "t", `,"expires_in":60`, noon.Add(time.Minute)},
		{"string", "t", `,"expires_in":"60"`, noon.Add(time.Minute)},
		{"absent", "t", ``, time.Time{}},
		{"null", "t", `,"expires_in":null`, time.Time{}},
		{"of the token", own(noon.Add(time.Hour)), ``, noon.Add(time.Hour)},
		{"the token ends first", own(noon.Add(time.Minute)), `,"expires_in":3600`, noon.Add(time.Minute)},
		{"the answer ends first", own(noon.Add(time.Hour)), `,"expires_in":60`, noon.Add(time.Minute)},
		{"a clock that is ahead", own(noon.Add(-time.Minute)), `,"expires_in":300`, noon.Add(5 * time.Minute)},
		{"without end", "t", `,"expires_in":1e300`, noon.Add(100 * 365 * 24 * time.Hour)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(t)
			server.answer = `{"access_token":"` + c.token + `","token_type":"bearer"` + c.expiresIn + `}`
			got, err := obtain(t, server.source())
			if err != nil || !got.Expires.Equal(c.want) {
				t.Errorf("expires %s, %v, want %s", got.Expires, err, c.want)
			}
		})
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	const good = `{"access_token":"geheim","token_type":"Bearer"`
	cases := []struct {
		name, answer, want string
	}{
		{"text", "geheim", "not a JSON object"},
		{"array", "[]", "not a JSON object"},
		{"two", good + `}{}`, "not a JSON object"},
		{"null", "null", "no access_token"},
		{"nothing", "{}", "no access_token"},
		{"no type", `{"access_token":"geheim"}`, "only bearer tokens"},
		{"proof of possession", `{"access_token":"geheim","token_type":"DPoP"}`, `"DPoP"`},
		{"a refresh token", good + `,"issued_token_type":"urn:ietf:params:oauth:token-type:refresh_token"}`, "cannot be presented"},
		{"SAML", good + `,"issued_token_type":"urn:ietf:params:oauth:token-type:saml2"}`, "cannot be presented"},
		{"expired", good + `,"expires_in":0}`, "expires_in"},
		{"long ago", good + `,"expires_in":-1}`, "expires_in"},
		{"no number", good + `,"expires_in":"soon"}`, "expires_in"},
		{"too large", `{"access_token":"` + strings.Repeat("a", 1<<20) + `"}`, "larger than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(t)
			server.answer = c.answer
			_, err := obtain(t, server.source())
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, credential.ErrRefused) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	server := newServer(t)
	source := server.source()
	source.RequestedTokenType = tokenendpoint.IDToken
	if _, err := obtain(t, source); err == nil || !strings.Contains(err.Error(), "was requested") {
		t.Errorf("another type than requested: %v", err)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	cases := []struct {
		name    string
		status  int
		answer  string
		refused bool
		want    string
	}{
		{"invalid grant", 400, `{"error":"invalid_grant","error_description":"subject \u001b[2Jis gone"}`, true, "invalid_grant: subject �[2Jis gone"},
		{"invalid target", 400, `{"error":"invalid_target"}`, true, "invalid_target"},
		{"invalid client", 401, `{"error":"invalid_client"}`, true, "answers 401, invalid_client"},
		{"outage that has an error", 503, `{"error":"invalid_grant"}`, false, "503"},
		{"too many", 429, `{"error":"access_denied"}`, false, "429"},
		{"later", 400, `{"error":"temporarily_unavailable"}`, false, "temporarily_unavailable"},
		{"a proxy's page", 403, `<html>geheim`, false, "answers 403"},
		{"redirect", 307, ``, false, "redirects are not followed"},
		{"what was sent", 400, `{"error":"invalid_grant","error_description":"bad token ` + subjectToken + `"}`, true, "bad token [redacted]"},
		{"the beginning of it", 400, `{"error":"invalid_grant","error_description":"bad token '` + subjectToken[:30] + `...'"}`, true, "bad token '[redacted]"},
		{"the secret", 401, `{"error":"invalid_client","error_description":"not geheim-secret"}`, true, "not [redacted]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := newServer(t)
			server.status, server.answer = c.status, c.answer
			server.header = http.Header{"Location": {server.URL + "/elsewhere"}}
			source := server.source()
			source.Authentication, source.ClientID, source.ClientSecretFile = tokenexchange.Basic, "client", put(t, "secret", "geheim-secret")
			_, err := obtain(t, source)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, credential.ErrRefused) != c.refused || errors.Is(err, credential.ErrNeedsPerson) {
				t.Errorf("error %v, want %q, refused %v", err, c.want, c.refused)
			}
			if err != nil && strings.Contains(err.Error(), subjectToken[:30]) {
				t.Errorf("a part of the token is shown: %v", err)
			}
			if len(server.forms) != 1 {
				t.Errorf("%d requests", len(server.forms))
			}
		})
	}
}
