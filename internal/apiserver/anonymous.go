package apiserver

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// RefuseAnonymous returns an authenticator that accepts no direct caller of this server as system:anonymous, except
// for its health checks. Whether there are anonymous users is for the cluster to decide: those that kube-apiserver passes on
// come by its front proxy, which shows a certificate.
func RefuseAnonymous(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(r)
		if ok && response.User.GetName() == user.Anonymous && !byCertificate(r) && !isHealthCheck(r.URL.Path) {
			return nil, false, nil
		}
		return response, ok, err
	})
}

func byCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 }

func isHealthCheck(path string) bool {
	return slices.ContainsFunc([]string{"/healthz", "/livez", "/readyz"}, func(check string) bool { return path == check || strings.HasPrefix(path, check+"/") })
}
