package execcredential_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// plainServer records what each request was authorized with.
func plainServer(t *testing.T) (*httptest.Server, chan string) {
	t.Helper()
	seen := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	return server, seen
}

// Without TLS nothing is sent, and no program runs, unless the host is named.
func TestPlainHTTP(t *testing.T) {
	server, seen := plainServer(t)
	named := server.Listener.Addr().String()
	other, _ := plainServer(t)
	for name, c := range map[string]struct {
		hosts   []string
		url     string
		allowed bool
	}{
		"not named":          {url: server.URL},
		"named":              {hosts: []string{named}, url: server.URL, allowed: true},
		"other port":         {hosts: []string{other.Listener.Addr().String()}, url: server.URL},
		"host without port":  {hosts: []string{"127.0.0.1"}, url: server.URL},
		"user in the URL":    {hosts: nil, url: strings.Replace(server.URL, "http://", "http://jane:s3cr3t@", 1)},
		"one of several":     {hosts: []string{"localhost:1", named}, url: server.URL, allowed: true},
		"another of its own": {hosts: []string{named}, url: other.URL},
	} {
		t.Run(name, func(t *testing.T) {
			provider := exectest.NewProvider(t, token)
			pool, _ := newPool(t, execcredential.Options{PlainHTTPHosts: c.hosts})
			source := sourceOf(t, pool, provider.Config())
			for kind, rt := range map[string]http.RoundTripper{"Transport": source.Transport(nil), "Wrap": source.Wrap(nil)} {
				body := &closing{Reader: strings.NewReader("body")}
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, body)
				response, err := rt.RoundTrip(request)
				if c.allowed {
					must(t, err)
					_ = response.Body.Close()
					if got := <-seen; got != "Bearer abc" {
						t.Errorf("%s: the server saw %q", kind, got)
					}
					continue
				}
				var plain *execcredential.PlainHTTPError
				if !errors.As(err, &plain) || plain.Server != "http://"+request.URL.Host || !body.closed.Load() {
					t.Errorf("%s: error %v, body closed: %v", kind, err, body.closed.Load())
				}
				if !strings.Contains(fmt.Sprint(err), "Options.PlainHTTPHosts") || strings.Contains(fmt.Sprint(err), "s3cr3t") {
					t.Errorf("%s: error %q", kind, err)
				}
			}
			if runs := provider.Runs(); (runs > 0) != c.allowed || len(seen) != 0 {
				t.Errorf("%d runs, %d requests sent", runs, len(seen))
			}
		})
	}
}

// A request that the caller authorized itself passes as it is.
func TestPlainHTTPWithCredentialsOfTheCaller(t *testing.T) {
	server, seen := plainServer(t)
	provider := exectest.NewProvider(t, token)
	pool, _ := newPool(t, execcredential.Options{})
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	request.Header.Set("Authorization", "Basic xyz")
	response := need(sourceOf(t, pool, provider.Config()).Transport(nil).RoundTrip(request))(t)
	_ = response.Body.Close()
	if got := <-seen; got != "Basic xyz" || provider.Runs() != 0 {
		t.Errorf("the server saw %q after %d runs", got, provider.Runs())
	}
}

// All sources of an account must be allowed to go there.
func TestPlainHTTPOfSeveralPools(t *testing.T) {
	server, _ := plainServer(t)
	sources := make([]*execcredential.Source, 2)
	for i, hosts := range [][]string{{server.Listener.Addr().String()}, nil} {
		pool, _ := newPool(t, execcredential.Options{PlainHTTPHosts: hosts})
		sources[i] = sourceOf(t, pool, exectest.NewProvider(t, token).Config())
	}
	var plain *execcredential.PlainHTTPError
	if _, _, err := get(&http.Client{Transport: execcredential.NewAccount(sources[0], sources[1]).Wrap(nil)}, server.URL); !errors.As(err, &plain) {
		t.Errorf("error %v", err)
	}
}

// A server that leads from TLS to plain text gets no token there, neither to itself nor to another one, named or not.
func TestRedirectFromTLSToPlainHTTP(t *testing.T) {
	plain, seen := plainServer(t)
	var to string
	home := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer home.Close()
	hosts := []string{plain.Listener.Addr().String(), home.Listener.Addr().String()}
	source, _, _ := scripted(t, execcredential.Options{PlainHTTPHosts: hosts}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "abc"}, nil
	})
	// One name of two servers, one with TLS and one without.
	base := &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, network, home.Listener.Addr().String())
		},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, plain.Listener.Addr().String())
		},
	}
	for name, target := range map[string]string{"another server": plain.URL, "itself": "http://" + home.Listener.Addr().String()} {
		to = target
		if _, _, err := get(&http.Client{Transport: source.Transport(base)}, home.URL); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if first, second := <-seen, <-seen; first != "Bearer abc" || second != "" {
			t.Errorf("%s: with TLS %q was seen, without %q", name, first, second)
		}
	}
}

func TestPlainHTTPHostsAreChecked(t *testing.T) {
	for _, host := range []string{"", "http://localhost", "localhost/path", "jane@localhost", ":8001", "*", "*.example", "localhost:port", "a b", "::1", "::1:8001"} {
		var typed *execcredential.ConfigError
		if _, err := execcredential.NewPool(execcredential.Options{PlainHTTPHosts: []string{"localhost:1", host}}); !errors.As(err, &typed) || typed.Field != "plainHTTPHosts[1]" {
			t.Errorf("%q: error %v", host, err)
		}
	}
}

// A host is the same in any case, and with the port that a URL leaves out.
func TestPlainHTTPHostsAreCompared(t *testing.T) {
	for name, c := range map[string]struct {
		host, server string
		allowed      bool
	}{
		"other case":   {host: "LocalHost:8001", server: "http://localHOST:8001", allowed: true},
		"port left":    {host: "localhost", server: "http://localhost:80", allowed: true},
		"port named":   {host: "localhost:80", server: "http://localhost/prefix", allowed: true},
		"IPv6":         {host: "[::1]:8001", server: "http://[::1]:8001", allowed: true},
		"IPv6, port":   {host: "[::1]", server: "http://[::1]:8001"},
		"end of it":    {host: "localhost:80", server: "http://evil.localhost:80"},
		"start of it":  {host: "localhost:80", server: "http://localhost.evil:80"},
		"its address":  {host: "localhost:80", server: "http://127.0.0.1:80"},
		"port of user": {host: "localhost:80", server: "http://localhost:80@evil"},
	} {
		pool, _ := newPool(t, execcredential.Options{PlainHTTPHosts: []string{c.host}})
		config := execcredential.Config{Command: "login", APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, Cluster: execcredential.Cluster{Server: c.server}}
		var plain *execcredential.PlainHTTPError
		if _, err := pool.Source(config); c.allowed && err != nil || !c.allowed && !errors.As(err, &plain) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Kubernetes' own clients do not run a program for a cluster without TLS. The library refuses the same clusters.
func TestClustersWithoutTLS(t *testing.T) {
	for name, c := range map[string]struct {
		cluster string
		plain   string // what the error calls the server
	}{
		"https":                   {cluster: "server: https://1.2.3.4:6443"},
		"http":                    {cluster: "server: http://1.2.3.4:8080/prefix", plain: "http://1.2.3.4:8080"},
		"no scheme":               {cluster: "server: 1.2.3.4:8080", plain: "http://1.2.3.4:8080"},
		"name without scheme":     {cluster: "server: localhost:8080", plain: "http://localhost:8080"},
		"no scheme, authority":    {cluster: "server: 1.2.3.4:6443, certificate-authority: ca.pem"},
		"no scheme, insecure":     {cluster: "server: 1.2.3.4:6443, insecure-skip-tls-verify: true"},
		"http with an authority":  {cluster: "server: http://1.2.3.4, certificate-authority: ca.pem", plain: "http://1.2.3.4"},
		"with a password":         {cluster: "server: http://jane:s3cr3t@1.2.3.4", plain: "http://1.2.3.4"},
		"no server":               {cluster: "tls-server-name: a"},
		"something else entirely": {cluster: "server: '%%%'"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "current-context: c\ncontexts: [{name: c, context: {cluster: dev, user: u}}]\nclusters: [{name: dev, cluster: {"+c.cluster+
				"}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}]\n")
			_, err := execcredential.LoadKubeconfig(path, execcredential.Selection{})
			var plain *execcredential.PlainHTTPError
			var place *execcredential.KubeconfigError
			if c.plain == "" {
				must(t, err)
				return
			}
			if !errors.As(err, &plain) || plain.Server != c.plain || !errors.As(err, &place) || place.Path != path || place.Place != "clusters[name=dev].cluster.server" {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), "Selection.PlainHTTP") || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error %q", err)
			}
			// A user who wants it sets it twice: for the reader, and for the pool.
			config := need(execcredential.LoadKubeconfig(path, execcredential.Selection{PlainHTTP: true}))(t)
			pool, _ := newPool(t, execcredential.Options{})
			if _, err := pool.Source(config); !errors.As(err, &plain) || plain.Server != c.plain {
				t.Errorf("a pool that does not allow the host: %v", err)
			}
			u := need(url.Parse(c.plain))(t)
			allowing, _ := newPool(t, execcredential.Options{PlainHTTPHosts: []string{u.Host}})
			expect(t, errOf(allowing.Source(config)), "a pool that allows the host")
		})
	}
}

// A client certificate can't be shown without TLS, and a client must not be taken for another one.
func TestCertificateWithoutTLS(t *testing.T) {
	server, seen := plainServer(t)
	certificate, key := exectest.NewAuthority(t).Issue("jane", start.Add(-time.Hour), start.Add(time.Hour))
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return exectest.Certificate(certificate, key, time.Time{}) })
	pool, _ := newPool(t, execcredential.Options{PlainHTTPHosts: []string{server.Listener.Addr().String()}})
	source := sourceOf(t, pool, provider.Config())
	for kind, rt := range map[string]http.RoundTripper{"Transport": source.Transport(nil), "Wrap": source.Wrap(nil)} {
		body := &closing{Reader: strings.NewReader("body")}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		_, err := rt.RoundTrip(request)
		var plain *execcredential.PlainHTTPError
		if !errors.As(err, &plain) || !plain.CertificateOnly || plain.Server != server.URL || !body.closed.Load() || len(seen) != 0 {
			t.Errorf("%s: error %v, body closed: %v, %d requests sent", kind, err, body.closed.Load(), len(seen))
		}
	}
}
