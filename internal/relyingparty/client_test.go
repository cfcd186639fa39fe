package relyingparty

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// A name that leads nowhere is reached at another address, whose certificate must be for that one.
func TestTrustingAt(t *testing.T) {
	var asked string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.Host + r.URL.Path }))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	address := server.Listener.Addr().String()
	answer := testkit.Need(TrustingAt(address, roots).Get("https://identity.invalid/jwks"))(t)
	_ = answer.Body.Close()
	if asked != "identity.invalid/jwks" {
		t.Errorf("asked for %s", asked)
	}
	_, port, _ := strings.Cut(address, ":")
	for where, want := range map[string]string{
		"localhost:" + port: "certificate is valid for",
		"::1":               " [::1]:443",
		"[::1]":             " [::1]:443",
	} {
		answer, err := TrustingAt(where, roots).Get("https://identity.invalid/jwks")
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
}
