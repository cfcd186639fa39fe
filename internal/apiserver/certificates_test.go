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
		user        string // the user by the next authenticator, or ""
		err         error
		later       time.Duration
	}
	janeCalls := call{certificate: jane, user: "jane"}
	for name, c := range map[string]struct {
		calls  []call
		called int
	}{
		"twice":                               {[]call{janeCalls, janeCalls}, 1},
		"ten seconds later":                   {[]call{janeCalls, {certificate: jane, user: "jane", later: 10*time.Second + 1}}, 2},
		"another certificate":                 {[]call{janeCalls, {certificate: &x509.Certificate{Raw: []byte("joe"), Subject: pkix.Name{CommonName: "joe"}, NotAfter: jane.NotAfter}, user: "joe"}}, 2},
		"no certificate":                      {[]call{{user: "anyone"}, {user: "anyone"}}, 2},
		"refused":                             {[]call{{certificate: jane}, {certificate: jane}}, 2},
		"an error":                            {[]call{{certificate: jane, user: "jane", err: errors.New("outage")}, janeCalls}, 2},
		"with a token":                        {[]call{{certificate: jane, user: "jane", header: "Authorization"}, janeCalls}, 2},
		"with a token afterwards":             {[]call{janeCalls, {certificate: jane, user: "token", header: "Authorization"}}, 2},
		"by the proxy's user header":          {[]call{{certificate: jane, user: "jane", header: "On-Behalf-Of"}, janeCalls}, 2},
		"by the proxy's group header":         {[]call{{certificate: jane, user: "jane", header: "Groups-Of"}, janeCalls}, 2},
		"by the proxy's extra header":         {[]call{{certificate: jane, user: "jane", header: "More-Scopes"}, janeCalls}, 2},
		"by the common header":                {[]call{{certificate: jane, user: "jane", header: "X-Remote-User"}, janeCalls}, 2},
		"another user than the certificate's": {[]call{{certificate: jane, user: "joe"}, janeCalls}, 2},
		"an anonymous one":                    {[]call{{certificate: jane, user: user.Anonymous}, {certificate: jane, user: user.Anonymous}}, 2},
		"expires before it's forgotten":       {[]call{{certificate: short(jane, now), user: "jane"}, {certificate: short(jane, now), user: "jane", later: 2 * time.Second}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(now)
			called := 0
			var current call
			remember := RememberCertificates(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
				called++
				if current.user == "" {
					return nil, false, current.err
				}
				return &authenticator.Response{User: &user.DefaultInfo{Name: current.user}}, true, current.err
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
				if ok != (call.user != "") || !errors.Is(err, call.err) || ok && response.User.GetName() != call.user {
					t.Errorf("call %d: %v, %v, %v, want %q", i, response, ok, err, call.user)
				}
			}
			if called != c.called {
				t.Errorf("called %d times, want %d", called, c.called)
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
