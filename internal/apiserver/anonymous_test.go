package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestRefuseAnonymous(t *testing.T) {
	for name, test := range map[string]struct {
		path  string
		user  string
		proxy bool
		want  bool
	}{
		"anonymous, directly":          {path: "/apis", user: user.Anonymous},
		"anonymous, looks like health": {path: "/readyzzz", user: user.Anonymous},
		"anonymous, a health check":    {path: "/readyz", user: user.Anonymous, want: true},
		"anonymous, one health check":  {path: "/livez/etcd", user: user.Anonymous, want: true},
		"anonymous, from the proxy":    {path: "/apis", user: user.Anonymous, proxy: true, want: true},
		"a user, directly":             {path: "/apis", user: "jane", want: true},
	} {
		request := httptest.NewRequest("GET", test.path, nil)
		request.TLS = &tls.ConnectionState{}
		if test.proxy {
			request.TLS.PeerCertificates = []*x509.Certificate{{}}
		}
		next := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: test.user}}, true, nil
		})
		_, got, err := RefuseAnonymous(next).AuthenticateRequest(request)
		if got != test.want || err != nil {
			t.Errorf("%s: authenticated %v, %v, want %v", name, got, err, test.want)
		}
	}
}
