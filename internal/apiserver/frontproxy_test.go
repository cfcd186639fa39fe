package apiserver

import (
	"crypto/tls"
	gox509 "crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/test/testkit"
)

func issue(t testing.TB, name string, by *testkit.Certificate) *testkit.Certificate {
	t.Helper()
	return testkit.NewCertificate(t, gox509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []gox509.ExtKeyUsage{gox509.ExtKeyUsageClientAuth}, IsCA: by == nil}, by)
}

// counted counts how often a certificate is verified.
type counted struct {
	dynamiccertificates.CAContentProvider
	verified int
}

func (c *counted) VerifyOptions() (gox509.VerifyOptions, bool) {
	c.verified++
	return c.CAContentProvider.VerifyOptions()
}

func trusting(t testing.TB, ca *testkit.Certificate) *counted {
	t.Helper()
	bundle := testkit.Need(dynamiccertificates.NewStaticCAContent("ca", ca.PEM()))(t)
	return &counted{CAContentProvider: bundle}
}

func frontProxy(ca dynamiccertificates.CAContentProvider) *authenticatorfactory.RequestHeaderConfig {
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider: ca, AllowedClientNames: headerrequest.StaticStringSlice{"proxy"},
		UsernameHeaders: headerrequest.StaticStringSlice{"X-Remote-User"}, UIDHeaders: headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders: headerrequest.StaticStringSlice{"X-Remote-Group"}, ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
	}
}

func proxied(by *testkit.Certificate, name string) *http.Request {
	r := httptest.NewRequest("GET", "/apis", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*gox509.Certificate{by.Certificate}}
	if name != "" {
		r.Header.Set("X-Remote-User", name)
		r.Header.Set("X-Remote-Group", "group of "+name)
	}
	return r
}

func TestRememberFrontProxy(t *testing.T) {
	ca, other := issue(t, "ca", nil), issue(t, "other", nil)
	proxy, another := issue(t, "proxy", ca), issue(t, "another", ca)
	forged := issue(t, "proxy", other)
	trusted := trusting(t, ca)
	clock := testingclock.NewFakeClock(time.Now())
	others := 0
	remember := RememberFrontProxy(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		others++
		return nil, false, nil
	}), frontProxy(trusted), clock)
	for i, call := range []struct {
		by               *testkit.Certificate
		name, want       string
		later            time.Duration
		verified, others int // so far
	}{
		{by: forged, name: "jane", verified: 1, others: 1},
		{by: proxy, name: "jane", want: "jane", verified: 2, others: 1},
		{by: proxy, name: "joe", want: "joe", verified: 2, others: 1},
		{by: proxy, verified: 2, others: 2},
		{by: another, name: "jane", verified: 3, others: 3}, // a name that is not allowed
		{by: another, name: "jane", verified: 4, others: 4},
		{by: forged, name: "jane", verified: 5, others: 5},
		{by: proxy, name: "jane", want: "jane", later: certificateMemory + 1, verified: 6, others: 5},
		{by: proxy, name: "jane", want: "jane", later: certificateMemory - 1, verified: 6, others: 5},
	} {
		clock.Step(call.later)
		r := proxied(call.by, call.name)
		response, ok, err := remember.AuthenticateRequest(r)
		if ok != (call.want != "") || err != nil {
			t.Fatalf("call %d: %v, %v, %v, want %q", i, response, ok, err, call.want)
		}
		if trusted.verified != call.verified || others != call.others {
			t.Errorf("call %d: verified %d times, want %d; called the next one %d times, want %d", i, trusted.verified, call.verified, others, call.others)
		}
		if !ok {
			continue
		}
		if who := response.User; who.GetName() != call.want || strings.Join(who.GetGroups(), ",") != "group of "+call.want+","+user.AllAuthenticated {
			t.Errorf("call %d: %+v", i, who)
		}
		if r.Header.Get("X-Remote-User") != "" {
			t.Errorf("call %d: the headers are still there", i)
		}
	}
	// An authority that is not trusted any more is found out after ten seconds.
	trusted.CAContentProvider = trusting(t, other).CAContentProvider
	clock.Step(certificateMemory)
	if _, ok, _ := remember.AuthenticateRequest(proxied(proxy, "jane")); ok {
		t.Error("a front proxy of an authority that is not trusted any more")
	}
}

func BenchmarkFrontProxy(b *testing.B) {
	ca := issue(b, "ca", nil)
	proxy := issue(b, "proxy", ca)
	config := frontProxy(trusting(b, ca))
	machinery := headerrequest.NewDynamicVerifyOptionsSecure(config.CAContentProvider.VerifyOptions, config.AllowedClientNames,
		config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	for name, next := range map[string]authenticator.Request{"machinery": machinery, "remembered": RememberFrontProxy(machinery, config, testingclock.NewFakeClock(time.Now()))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := next.AuthenticateRequest(proxied(proxy, "jane")); !ok || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
