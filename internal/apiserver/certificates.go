package apiserver

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
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
// connection it would be verified for every request, which costs more than an ES256 signature. It remembers only callers with
// a certificate of their own, and never beyond its expiry: not the users of a front proxy (proxy has its
// headers; nil without one), not callers with a token too, and no refusal.
func RememberCertificates(next authenticator.Request, proxy *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) authenticator.Request {
	remembered := cache.NewLRUExpireCacheWithClock(maxCertificates, clock)
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if !byCertificate(r) || mayBeMore(r.Header, proxy) {
			return next.AuthenticateRequest(r)
		}
		key := digest(r)
		if response, ok := remembered.Get(key); ok {
			return response.(*authenticator.Response), true, nil
		}
		response, ok, err := next.AuthenticateRequest(r)
		leaf := r.TLS.PeerCertificates[0]
		// Another user name than the certificate's was not decided by the certificate alone.
		if ok && err == nil && response.User.GetName() == leaf.Subject.CommonName {
			remembered.Add(key, response, min(leaf.NotAfter.Sub(clock.Now()), certificateMemory))
		}
		return response, ok, err
	})
}

// digest identifies the certificates of a request's connection.
func digest(r *http.Request) (key [sha256.Size]byte) {
	digest := sha256.New()
	for _, certificate := range r.TLS.PeerCertificates {
		_, _ = digest.Write(certificate.Raw) // a hash takes everything
	}
	digest.Sum(key[:0])
	return key
}

// mayBeMore reports whether the user may follow from more than the certificate: a token, or the headers of a front proxy. Their
// names are the cluster's choice; the common ones are matched in any case.
func mayBeMore(header http.Header, proxy *authenticatorfactory.RequestHeaderConfig) bool {
	var names, prefixes []string
	if proxy != nil {
		for _, provider := range []interface{ Value() []string }{proxy.UsernameHeaders, proxy.UIDHeaders, proxy.GroupHeaders} {
			if provider != nil {
				names = append(names, provider.Value()...)
			}
		}
		if proxy.ExtraHeaderPrefixes != nil {
			prefixes = proxy.ExtraHeaderPrefixes.Value()
		}
	}
	for _, name := range names {
		if header.Get(name) != "" {
			return true
		}
	}
	for name := range header {
		if name == "Authorization" || name == "Sec-Websocket-Protocol" || strings.HasPrefix(name, "X-Remote-") {
			return true
		}
		for _, prefix := range prefixes {
			if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				return true
			}
		}
	}
	return false
}
