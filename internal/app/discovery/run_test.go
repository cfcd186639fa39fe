package discovery

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/test/testkit"
)

const (
	testIssuer        = identity.Issuer("https://identity.example.com/garden")
	configurationPath = "/garden/.well-known/openid-configuration"
	jwksPath          = "/garden/jwks"
)

func must(t testing.TB, err error) {
	t.Helper()
	testkit.Must(t, err)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func newDocuments(t testing.TB) discovery.Documents {
	t.Helper()
	key, err := identity.NewPublicKey(newKey(t).Public())
	must(t, err)
	documents, err := discovery.New(testIssuer, []identity.PublicKey{key})
	must(t, err)
	return documents
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o600))
}

func putDocuments(t testing.TB, folder string, documents discovery.Documents) {
	t.Helper()
	put(t, filepath.Join(folder, discovery.ConfigurationKey), documents.Configuration())
	put(t, filepath.Join(folder, discovery.JWKSKey), documents.JWKS())
}

// authority signs the certificates of a test.
type authority struct{ own *testkit.Certificate }

func newAuthority(t testing.TB) *authority {
	t.Helper()
	return &authority{testkit.NewCertificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true}, nil)}
}

// issue writes tls.crt and tls.key for 127.0.0.1 into a folder.
func (a *authority) issue(t testing.TB, folder string, serial int64) {
	t.Helper()
	testkit.NewCertificate(t, x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "discovery"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.own).Write(t, folder, "tls")
}

// running is a discovery server on free ports of this machine.
type running struct {
	authority         *authority
	url, health       string
	tlsDir, documents string
	stop              func()
}

func startServer(t *testing.T, change func(*Config, *running)) *running {
	t.Helper()
	r := &running{authority: newAuthority(t), tlsDir: t.TempDir(), documents: t.TempDir()}
	r.authority.issue(t, r.tlsDir, 2)
	main, health := testkit.Listen(t), testkit.Listen(t)
	r.url, r.health = "https://"+main.Addr().String(), "https://"+health.Addr().String()
	config := Config{
		Issuer: string(testIssuer), DocumentsDir: r.documents, Listener: main, HealthListener: health, AnonymousMetrics: true,
		TLSCertFile: filepath.Join(r.tlsDir, "tls.crt"), TLSPrivateKeyFile: filepath.Join(r.tlsDir, "tls.key"),
		Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&config, r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		testkit.Expect(t, <-done, "run")
	})
	t.Cleanup(r.stop)
	return r
}

// client trusts the server's authority alone, and makes a new connection for each request.
func (r *running) client(change func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: r.authority.own.Pool(), MinVersion: tls.VersionTLS12}
	if change != nil {
		change(config)
	}
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

type answered struct {
	code   int
	body   string
	header http.Header
	proto  string
	serial int64
}

// ask repeats a request that gets no answer: the server soon gives up a client that is slow, as this one is on a machine that stalls.
func (r *running) ask(t testing.TB, client *http.Client, method, url string, change func(*http.Request)) (got answered) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	must(t, err)
	if change != nil {
		change(request)
	}
	testkit.Eventually(t, "an answer from "+url, func() bool {
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		got = answered{response.StatusCode, string(body), response.Header, response.Proto, response.TLS.PeerCertificates[0].SerialNumber.Int64()}
		return err == nil
	})
	return got
}

func (r *running) get(t testing.TB, url string) answered {
	t.Helper()
	return r.ask(t, r.client(nil), http.MethodGet, url, nil)
}

func (r *running) serves(t testing.TB, documents discovery.Documents) func() bool {
	return func() bool {
		got := r.get(t, r.url+jwksPath)
		return got.code == http.StatusOK && got.body == string(documents.JWKS())
	}
}

func TestServerServesAFolder(t *testing.T) {
	r := startServer(t, func(c *Config, _ *running) { c.MaxAge = 90 * time.Second })
	testkit.Eventually(t, "it is alive", func() bool { return r.get(t, r.health+"/livez").code == http.StatusOK })
	if got := r.get(t, r.health+"/readyz"); got.code != http.StatusServiceUnavailable {
		t.Errorf("readyz without documents is %d", got.code)
	}
	if got := r.get(t, r.url+jwksPath); got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("without documents: %+v", got)
	}
	documents := newDocuments(t)
	putDocuments(t, r.documents, documents)
	testkit.Eventually(t, "documents are served", r.serves(t, documents))
	if got := r.get(t, r.health+"/readyz"); got.code != http.StatusOK {
		t.Errorf("readyz with documents is %d", got.code)
	}

	got := r.ask(t, r.client(nil), http.MethodGet, r.url+configurationPath, func(request *http.Request) {
		request.Host = "evil.example.com"
		request.Header.Set("X-Forwarded-Host", "evil.example.com")
	})
	if got.body != string(documents.Configuration()) || got.proto != "HTTP/2.0" || got.header.Get("Cache-Control") != "public, max-age=90" {
		t.Errorf("configuration: %+v", got)
	}
	etag := got.header.Get("ETag")
	got = r.ask(t, r.client(nil), http.MethodGet, r.url+configurationPath, func(request *http.Request) { request.Header.Set("If-None-Match", etag) })
	if got.code != http.StatusNotModified || got.body != "" {
		t.Errorf("with its ETag: %+v", got)
	}
	if got := r.ask(t, r.client(nil), http.MethodHead, r.url+jwksPath, nil); got.code != http.StatusOK || got.body != "" || got.header.Get("Content-Type") != "application/jwk-set+json" {
		t.Errorf("HEAD: %+v", got)
	}
	if got := r.ask(t, r.client(nil), http.MethodPost, r.url+jwksPath, nil); got.code != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %+v", got)
	}
	for _, path := range []string{"/", jwksPath + "/", "/metrics", "/readyz"} {
		if got := r.get(t, r.url+path); got.code != http.StatusNotFound || !json.Valid([]byte(got.body)) {
			t.Errorf("%s: %+v", path, got)
		}
	}

	must(t, os.RemoveAll(r.documents))
	testkit.Eventually(t, "the loss is in the metrics", func() bool {
		return strings.Contains(r.get(t, r.health+"/metrics").body, "\ncredence_discovery_source_healthy 0\n")
	})
	if !r.serves(t, documents)() || r.get(t, r.health+"/readyz").code != http.StatusOK {
		t.Error("documents are not served any more after their folder was removed")
	}
}

func TestServerReloadsItsCertificate(t *testing.T) {
	r := startServer(t, nil)
	testkit.Eventually(t, "the first certificate is in use", func() bool { return r.get(t, r.url+"/").serial == 2 })
	for serial := int64(3); serial < 8; serial++ {
		r.authority.issue(t, r.tlsDir, serial)
		testkit.Eventually(t, "the new certificate is in use", func() bool { return r.get(t, r.url+"/").serial == serial })
	}
	put(t, filepath.Join(r.tlsDir, "tls.crt"), []byte("garbage"))
	testkit.Eventually(t, "the refusal is in the metrics", func() bool {
		return !strings.Contains(r.get(t, r.health+"/metrics").body, "\ncredence_discovery_certificate_refusals_total 0\n")
	})
	if got := r.get(t, r.url+"/").serial; got != 7 {
		t.Errorf("certificate %d is in use after garbage, want 7", got)
	}
}

func TestServerSpeaksSafeTLSAlone(t *testing.T) {
	r := startServer(t, nil)
	for name, test := range map[string]struct {
		change func(*tls.Config)
		ok     bool
	}{
		"TLS 1.3": {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, true},
		"TLS 1.2": {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, true},
		"TLS 1.1": {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 }, false},
		"TLS 1.2 and CBC": {func(c *tls.Config) {
			c.NextProtos, c.MaxVersion, c.CipherSuites = []string{"http/1.1"}, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		}, false},
	} {
		client := r.client(test.change)
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		if test.ok {
			r.ask(t, client, http.MethodGet, r.url, nil)
			continue
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
		must(t, err)
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s is spoken", name)
		}
	}
}

func TestServerRefusesHugeHeaders(t *testing.T) {
	r := startServer(t, nil)
	client := r.client(func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	got := r.ask(t, client, http.MethodGet, r.url+jwksPath, func(request *http.Request) { request.Header.Set("If-None-Match", strings.Repeat("x", 64<<10)) })
	if got.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want 431", got.code)
	}
}

func TestServerStartsWithoutTheAPI(t *testing.T) {
	documents := newDocuments(t)
	r := startServer(t, func(c *Config, r *running) {
		cache := t.TempDir()
		data, err := json.Marshal(map[string]string{"configuration": string(documents.Configuration()), "jwks": string(documents.JWKS())})
		must(t, err)
		put(t, filepath.Join(cache, "last-good-documents.json"), data)
		closed := testkit.Listen(t)
		must(t, closed.Close())
		kubeconfig := filepath.Join(cache, "kubeconfig")
		put(t, kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],
			"clusters":[{"name":"c","cluster":{"server":"https://`+closed.Addr().String()+`"}}],"users":[{"name":"c","user":{}}]}`))
		c.DocumentsDir, c.DocumentsConfigMap, c.Kubeconfig, c.DocumentsCache = "", "credence-system/documents", kubeconfig, cache
	})
	testkit.Eventually(t, "cached documents are served", r.serves(t, documents))
	testkit.Eventually(t, "the outage is in the metrics", func() bool {
		return regexp.MustCompile(`credence_discovery_load_refusals_total{reason="unreadable"} [1-9]`).MatchString(r.get(t, r.health+"/metrics").body)
	})
	if got := r.get(t, r.health+"/readyz"); got.code != http.StatusOK {
		t.Errorf("readyz without the API is %d", got.code)
	}
}

func TestServerAnswersRequestsInFlight(t *testing.T) {
	authority, folder := newAuthority(t), t.TempDir()
	authority.issue(t, folder, 2)
	pair, err := source.NewKeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), (*discovery.Recorder)(nil), slog.New(slog.DiscardHandler))
	must(t, err)
	arrived, release := make(chan struct{}), make(chan struct{})
	l := testkit.Listen(t)
	server := serving.New("test", l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = w.Write([]byte("answered"))
	}), pair, slog.New(slog.DiscardHandler))

	ctx, cancel := context.WithCancel(context.Background())
	stopped, body := make(chan error, 1), make(chan string, 1)
	go func() { stopped <- server.Run(ctx) }()
	r := &running{authority: authority}
	go func() {
		response, err := r.client(nil).Get("https://" + l.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		data, _ := io.ReadAll(response.Body)
		body <- string(data)
	}()
	<-arrived
	cancel()
	testkit.Eventually(t, "new connections are refused", func() bool {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-body; got != "answered" {
		t.Errorf("the request in flight got %q", got)
	}
	must(t, <-stopped)
}
