package apiserver

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// lateCA is a certificate authority that is not known from the start.
type lateCA struct {
	dynamiccertificates.CAContentProvider
	known bool
}

func (c *lateCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, c.known }

func TestNoUserIsAnonymousForLackOfACA(t *testing.T) {
	ca := &lateCA{}
	served := 0
	handler := untilTrusted(ca, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	before := httptest.NewRecorder()
	handler.ServeHTTP(before, httptest.NewRequest("GET", "/apis", nil))
	if before.Code != http.StatusServiceUnavailable || before.Header().Get("Retry-After") == "" || served != 0 {
		t.Errorf("before the CA is known: code %d, %v, served %d", before.Code, before.Header(), served)
	}
	ca.known = true
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/apis", nil))
	if served != 1 {
		t.Errorf("with the CA known: served %d, want 1", served)
	}
}
