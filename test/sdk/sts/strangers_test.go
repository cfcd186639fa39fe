package sts

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
)

// A token that is accepted gives nothing to requests for what was not set up.
func TestWhatWasNotSetUp(t *testing.T) {
	published := newDocuments(t)
	issued, err := published.plane.Issue(issuer.Request{
		Identity: issuer.Identity{Namespace: "shop", Name: "cart", UID: "uid"}, Audiences: []string{"one"}, TargetAlgorithm: identity.RS256,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{Issuer: published.plane.Issuer(), Audience: "one", Subject: string(issued.Subject)}
	for _, c := range []struct{ service, field, value, want string }{
		{"aws", "RoleArn", "arn:aws:iam::112233445566:role/two", "<Code>AccessDenied</Code>"},
		{"aws", "Action", "AssumeRole", "<Code>InvalidAction</Code>"},
		{"azure", "client_id", "another", "AADSTS700016:"},
		{"azure", "grant_type", "password", "AADSTS70003:"},
		{"azure", "client_assertion_type", "another", "AADSTS70003:"},
		{"google", "audience", "//iam.googleapis.com/projects/1/providers/two", `"error":"invalid_target"`},
		{"google", "subject_token_type", "urn:ietf:params:oauth:token-type:saml2", `"error":"invalid_request"`},
		{"alibaba", "RoleArn", "acs:ram::1:role/two", `"Code":"EntityNotExist.Role"`},
		{"alibaba", "OIDCProviderArn", "acs:ram::1:oidc-provider/two", `"Code":"AuthenticationFail.NoPermission"`},
		{"alibaba", "Action", "AssumeRole", `"Code":"InvalidAction.NotFound"`},
	} {
		t.Run(c.service+"/"+c.field, func(t *testing.T) {
			s := services()[c.service]
			good := s.body
			ask := refusalCase{token: issued.Token.Reveal(), trust: trust, documents: published}
			if status, body := s.ask(t, ask); status != http.StatusOK {
				t.Fatalf("refused already: %s", body)
			}
			s.body = func(token string) url.Values {
				body := good(token)
				body.Set(c.field, c.value)
				return body
			}
			if status, body := s.ask(t, ask); status == http.StatusOK || !strings.Contains(body, c.want) {
				t.Errorf("answer %d %s, want a refusal with %s", status, body, c.want)
			}
		})
	}
}

// A service account of Google Cloud is impersonated by the subjects that may, with a token that was exchanged before.
func TestImpersonation(t *testing.T) {
	const provider, account = "projects/1/locations/global/workloadIdentityPools/pool/providers/one", "one@project.iam.gserviceaccount.com"
	server := New(Settings{Google: []GoogleProvider{{Name: provider, Trust: Trust{Subject: "cart"}, ServiceAccounts: []string{account}}}})
	allowed := server.grant(googlePrincipal(provider, "cart"), claims{})
	other := server.grant(googlePrincipal(provider, "car"), claims{})
	for _, c := range []struct {
		name, account, bearer string
		want                  int
	}{
		{"allowed", account, allowed, http.StatusOK},
		{"other account", "two@project.iam.gserviceaccount.com", allowed, http.StatusForbidden},
		{"other subject", account, other, http.StatusForbidden},
		{"no token of Google's", account, "abc", http.StatusUnauthorized},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/"+c.account+":generateAccessToken", nil)
		request.Header.Set("Authorization", "Bearer "+c.bearer)
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		if recorder.Code != c.want {
			t.Errorf("%s: answer %d %s, want %d", c.name, recorder.Code, recorder.Body, c.want)
		}
	}
}

// Requests that are signed with unknown credentials have no caller.
func TestCallerIdentity(t *testing.T) {
	server := New(Settings{})
	session := server.grant("arn:aws:sts::112233445566:assumed-role/one/session", claims{})
	for name, c := range map[string]struct {
		accessKey, session string
		want               int
	}{
		"given":           {"ASIA" + session, session, http.StatusOK},
		"made up":         {"ASIAsession-9", "session-9", http.StatusForbidden},
		"another key":     {"ASIAsession-9", session, http.StatusForbidden},
		"another session": {"ASIA" + session, "", http.StatusForbidden},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://sts.amazonaws.com/", strings.NewReader("Action=GetCallerIdentity"))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.accessKey+"/20260101/us-east-1/sts/aws4_request, SignedHeaders=host, Signature=0")
		request.Header.Set("X-Amz-Security-Token", c.session)
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, request)
		if recorder.Code != c.want {
			t.Errorf("%s: answer %d %s, want %d", name, recorder.Code, recorder.Body, c.want)
		}
	}
}
