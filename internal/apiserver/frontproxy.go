package apiserver

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/clock"
)

// maxFrontProxies bounds the memory: each kube-apiserver of the cluster has one certificate, and its successor.
const maxFrontProxies = 64

// RememberFrontProxy returns an authenticator that verifies the certificate of a front proxy once in ten seconds, and not for
// each request that kube-apiserver passes on, which costs more than an ES256 signature. It remembers that the certificate is
// a front proxy's, never its users: they are read from the headers of each request. All other requests are for next.
func RememberFrontProxy(next authenticator.Request, proxy *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) authenticator.Request {
	if proxy == nil {
		return next
	}
	remembered := cache.NewLRUExpireCacheWithClock(maxFrontProxies, clock)
	headers := group.NewAuthenticatedGroupAdder(headerrequest.NewDynamic(proxy.UsernameHeaders, proxy.UIDHeaders, proxy.GroupHeaders, proxy.ExtraHeaderPrefixes))
	verified := x509.NewDynamicCAVerifier(proxy.CAContentProvider.VerifyOptions, authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		remembered.Add(digest(r), true, min(r.TLS.PeerCertificates[0].NotAfter.Sub(clock.Now()), certificateMemory))
		return headers.AuthenticateRequest(r)
	}), proxy.AllowedClientNames)
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if !byCertificate(r) || !speaksFor(r.Header, proxy) {
			return next.AuthenticateRequest(r)
		}
		if _, ok := remembered.Get(digest(r)); ok {
			return headers.AuthenticateRequest(r)
		}
		if response, ok, err := verified.AuthenticateRequest(r); ok && err == nil {
			return response, true, nil
		}
		return next.AuthenticateRequest(r)
	})
}

// speaksFor reports whether a request has a header by which a front proxy names its caller.
func speaksFor(header http.Header, proxy *authenticatorfactory.RequestHeaderConfig) bool {
	return slices.ContainsFunc(proxy.UsernameHeaders.Value(), func(name string) bool { return header.Get(name) != "" })
}
