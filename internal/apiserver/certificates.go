package apiserver

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
)

const (
	// certificateMemory is how long a client certificate that was verified is not verified again: as long as the cluster's
	// answers about tokens and rights are kept.
	certificateMemory = 10 * time.Second
	// maxCertificates bounds the memory.
	maxCertificates = 4096
)

// RememberCertificates returns an authenticator that verifies the same client certificate once in ten seconds: over a kept
// connection it would be verified for every request, which costs more than an ES256 signature. Only those are remembered
// that were accepted, for themselves and not for whoever they speak for, and never beyond their own expiry.
func RememberCertificates(next authenticator.Request, clock clock.PassiveClock) authenticator.Request {
	remembered := cache.NewLRUExpireCacheWithClock(maxCertificates, clock)
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if !byCertificate(r) || saysMore(r.Header) {
			return next.AuthenticateRequest(r)
		}
		digest := sha256.New()
		for _, certificate := range r.TLS.PeerCertificates {
			_, _ = digest.Write(certificate.Raw) // a hash takes everything
		}
		var key [sha256.Size]byte
		digest.Sum(key[:0])
		if response, ok := remembered.Get(key); ok {
			return response.(*authenticator.Response), true, nil
		}
		response, ok, err := next.AuthenticateRequest(r)
		if ok && err == nil {
			left := r.TLS.PeerCertificates[0].NotAfter.Sub(clock.Now())
			remembered.Add(key, response, min(left, certificateMemory))
		}
		return response, ok, err
	})
}

// saysMore says whether who calls may follow from more than the certificate: a token, or what a front proxy says.
func saysMore(header http.Header) bool {
	for name := range header {
		if name == "Authorization" || strings.HasPrefix(name, "X-Remote-") || name == "Sec-Websocket-Protocol" {
			return true
		}
	}
	return false
}
