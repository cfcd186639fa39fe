package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	testingclock "k8s.io/utils/clock/testing"
)

func TestRememberCertificates(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	jane := &x509.Certificate{Raw: []byte("jane"), Subject: pkix.Name{CommonName: "jane"}, NotAfter: now.Add(time.Hour)}
	proxy := &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StaticStringSlice{"On-Behalf-Of"}, GroupHeaders: headerrequest.StaticStringSlice{"Groups-Of"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"More-"},
	}
	type call struct {
		certificate *x509.Certificate
		header      string
		says        string // who the next authenticator says it is; empty: nobody
		err         error
		later       time.Duration
	}
	janeCalls := call{certificate: jane, says: "jane"}
	for name, c := range map[string]struct {
		calls []call
		asked int
	}{
		"twice":                         {[]call{janeCalls, janeCalls}, 1},
		"ten seconds later":             {[]call{janeCalls, {certificate: jane, says: "jane", later: 10*time.Second + 1}}, 2},
		"another certificate":           {[]call{janeCalls, {certificate: &x509.Certificate{Raw: []byte("joe"), Subject: pkix.Name{CommonName: "joe"}, NotAfter: jane.NotAfter}, says: "joe"}}, 2},
		"no certificate":                {[]call{{says: "anyone"}, {says: "anyone"}}, 2},
		"refused":                       {[]call{{certificate: jane}, {certificate: jane}}, 2},
		"an error":                      {[]call{{certificate: jane, says: "jane", err: errors.New("outage")}, janeCalls}, 2},
		"with a token":                  {[]call{{certificate: jane, says: "jane", header: "Authorization"}, janeCalls}, 2},
		"with a token afterwards":       {[]call{janeCalls, {certificate: jane, says: "token", header: "Authorization"}}, 2},
		"by the proxy's user header":    {[]call{{certificate: jane, says: "jane", header: "On-Behalf-Of"}, janeCalls}, 2},
		"by the proxy's group header":   {[]call{{certificate: jane, says: "jane", header: "Groups-Of"}, janeCalls}, 2},
		"by the proxy's extra header":   {[]call{{certificate: jane, says: "jane", header: "More-Scopes"}, janeCalls}, 2},
		"by the common header":          {[]call{{certificate: jane, says: "jane", header: "X-Remote-User"}, janeCalls}, 2},
		"who is not the certificate":    {[]call{{certificate: jane, says: "somebody else"}, janeCalls}, 2},
		"an anonymous one":              {[]call{{certificate: jane, says: user.Anonymous}, {certificate: jane, says: user.Anonymous}}, 2},
		"expires before it's forgotten": {[]call{{certificate: short(jane, now), says: "jane"}, {certificate: short(jane, now), says: "jane", later: 2 * time.Second}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(now)
			asked := 0
			var current call
			remember := RememberCertificates(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				asked++
				if current.says == "" {
					return nil, false, current.err
				}
				return &authenticator.Response{User: &user.DefaultInfo{Name: current.says}}, true, current.err
			}), proxy, clock)
			for i, call := range c.calls {
				current = call
				clock.Step(call.later)
				request := httptest.NewRequest("GET", "/apis", nil)
				request.TLS = &tls.ConnectionState{}
				if call.certificate != nil {
					request.TLS.PeerCertificates = []*x509.Certificate{call.certificate}
				}
				if call.header != "" {
					request.Header.Set(call.header, "value")
				}
				response, ok, err := remember.AuthenticateRequest(request)
				if ok != (call.says != "") || !errors.Is(err, call.err) || ok && response.User.GetName() != call.says {
					t.Errorf("call %d: %v, %v, %v, want %q", i, response, ok, err, call.says)
				}
			}
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// short is the certificate with a second to live.
func short(certificate *x509.Certificate, now time.Time) *x509.Certificate {
	copied := *certificate
	copied.NotAfter = now.Add(time.Second)
	return &copied
}
