package conformance

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// bodies answers every request with one of two bodies.
type bodies struct{ configuration, jwks []byte }

func (b bodies) RoundTrip(request *http.Request) (*http.Response, error) {
	body := b.jwks
	if strings.HasSuffix(request.URL.Path, "/openid-configuration") {
		body = b.configuration
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: request, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// FuzzRun holds that whatever is served and given gets a whole report, and that a document without its content type
// never passes.
func FuzzRun(f *testing.F) {
	documents := healthy(f)
	s := newSite(f)
	s.withToken(f)
	f.Add(documents.Configuration(), documents.JWKS(), s.options.Token)
	f.Add([]byte(`{"issuer":"https://identity.example.com/team","jwks_uri":"https://x/jwks"}`), []byte(`{"keys":[null,{"kty":"RSA","n":"","e":"AA"}]}`), "a.b.c")
	f.Add([]byte(`{"jwks_uri":"https://x/jwks"}`), []byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"a"},{"d":"c2VjcmV0"}]}`), "e30.e30.")
	f.Fuzz(func(t *testing.T, configuration, jwks []byte, token string) {
		report := Run(t.Context(), Options{
			Issuer: siteIssuer, Token: token, Clock: func() time.Time { return start },
			Client: &http.Client{Transport: bodies{configuration, jwks}},
		})
		holdRules(t, report, token)
		if report.Verdict() != Fail {
			t.Errorf("verdict %s without a content type", report.Verdict())
		}
	})
}
