package execcredential_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// server answers with 401 to what accepts refuses, and counts connections.
type server struct {
	*httptest.Server
	authority      *exectest.Authority
	requests       atomic.Int32
	unauthorized   atomic.Int32
	opened, closed atomic.Int32
}

func serve(t testing.TB, http2 bool, accepts func(*http.Request) bool) *server {
	t.Helper()
	s := &server{authority: exectest.NewAuthority(t)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		if !accepts(r) {
			s.unauthorized.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "unauthorized")
			return
		}
		fmt.Fprintf(w, "%s %s %s", r.Header.Get("Authorization"), common(r), body)
	}))
	s.EnableHTTP2 = http2
	s.TLS = s.authority.Server()
	s.TLS.Time = func() time.Time { return start }
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.closed.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func common(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "nobody"
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

func (s *server) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.authority.Pool()}, ForceAttemptHTTP2: s.EnableHTTP2}
}

func (s *server) pair(t testing.TB, name string) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(pemPair(s.authority.Issue(name, start.Add(-time.Hour), start.Add(1000*time.Hour))))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func pemPair(certificate, key string) ([]byte, []byte) { return []byte(certificate), []byte(key) }

func get(client *http.Client, url string) (string, int, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), response.StatusCode, err
}

func all(*http.Request) bool { return true }

func eachProtocol(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Run("HTTP/1.1", func(t *testing.T) { f(t, false) })
	t.Run("HTTP/2", func(t *testing.T) { f(t, true) })
}

func TestRequestIsNotChanged(t *testing.T) {
	server := serve(t, true, all)
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	for name, rt := range map[string]http.RoundTripper{"Transport": source.Transport(server.transport()), "Wrap": source.Wrap(server.transport())} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		request.Header.Set("Accept", "text/plain")
		response, err := rt.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != "Bearer abc nobody " {
			t.Errorf("%s: the server saw %q", name, body)
		}
		if len(request.Header) != 1 || response.Request == nil {
			t.Errorf("%s: the caller's request has the header %v", name, request.Header)
		}
	}
}

func TestCredentialsOfTheCallerWin(t *testing.T) {
	server := serve(t, false, all)
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "abc", Certificate: server.pair(t, "jane")}, nil
	})
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	request.Header.Set("Authorization", "Basic xyz")
	response, err := source.Transport(server.transport()).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if string(body) != "Basic xyz nobody " || script.runs.Load() != 0 {
		t.Errorf("the server saw %q after %d runs", body, script.runs.Load())
	}

	base := server.transport()
	base.TLSClientConfig.Certificates = []tls.Certificate{*server.pair(t, "static")}
	if got, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL); got != "Bearer abc static " {
		t.Errorf("with a certificate of the caller the server saw %q, error %v", got, err)
	}
}

func TestRedirectsGetNoCredential(t *testing.T) {
	var elsewhere string
	seen := make(chan string, 10)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
		if r.URL.Path == "/1" {
			http.Redirect(w, r, "/2", http.StatusFound)
		}
	}))
	defer away.Close()
	elsewhere = away.URL + "/1"
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/home":
			http.Redirect(w, r, "/same", http.StatusFound)
		case "/same":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		}
	}))
	defer home.Close()
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	if _, _, err := get(&http.Client{Transport: source.Transport(nil)}, home.URL+"/home"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/home Bearer abc", "/same Bearer abc", "/1 ", "/2 "} {
		if got := <-seen; got != want {
			t.Errorf("seen %q, want %q", got, want)
		}
	}
}

// 100 concurrent requests with a revoked token: one run, 100 successes.
func TestStormOfRevokedTokens(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		var valid atomic.Value
		valid.Store("token-1")
		server := serve(t, http2, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+valid.Load().(string) })
		var runs atomic.Int32
		provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
			return exectest.Token(fmt.Sprintf("token-%d", runs.Add(1)), start.Add(time.Hour))
		})
		pool, _ := newPool(t, execcredential.Options{})
		client := &http.Client{Transport: sourceOf(t, pool, provider.Config()).Transport(server.transport())}
		if _, status, err := get(client, server.URL); status != 200 {
			t.Fatalf("status %d, error %v", status, err)
		}
		valid.Store("token-2") // the first one is revoked before its time
		for i, err := range storm(100, func() error {
			request, _ := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("body"))
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != 200 || string(body) != "Bearer token-2 nobody body" {
				return fmt.Errorf("status %d, body %q", response.StatusCode, body)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if provider.Runs() != 2 {
			t.Errorf("%d runs, want one for the first token and one for the second", provider.Runs())
		}
	})
}

// A server that answers 401 whatever it is sent causes one run, and each request is sent once where the credential stays the same.
func TestStormOfPersistent401(t *testing.T) {
	server := serve(t, true, func(*http.Request) bool { return false })
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "same"}, nil })
	client := &http.Client{Transport: source.Transport(server.transport())}
	for _, err := range storm(100, func() error {
		body, status, err := get(client, server.URL)
		if status != 401 || body != "unauthorized" {
			return fmt.Errorf("status %d, body %q, error %v", status, body, err)
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if script.runs.Load() != 2 || server.requests.Load() != 100 {
		t.Errorf("%d runs and %d requests", script.runs.Load(), server.requests.Load())
	}
}

func TestFailedRefreshOf401(t *testing.T) {
	server := serve(t, false, func(*http.Request) bool { return false })
	source, script, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		if run > 1 {
			return execcredential.Material{}, errors.New("broken")
		}
		return execcredential.Material{Token: "abc"}, nil
	})
	client := &http.Client{Transport: source.Transport(server.transport())}
	for _, err := range storm(100, func() error {
		if _, status, err := get(client, server.URL); status != 401 {
			return fmt.Errorf("status %d, error %v", status, err)
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if script.runs.Load() != 2 {
		t.Errorf("%d runs", script.runs.Load())
	}
}

// A body that can't be read again is not sent again; the next request has the new credential.
func TestBodyThatCannotBeReplayed(t *testing.T) {
	server := serve(t, false, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer b" })
	source, script, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) { return execcredential.Material{Token: name(run)}, nil })
	client := &http.Client{Transport: source.Transport(server.transport())}
	post := func() int {
		response, err := client.Post(server.URL, "text/plain", struct{ io.Reader }{strings.NewReader("body")})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := post(); got != 401 || script.runs.Load() != 2 {
		t.Errorf("status %d after %d runs", got, script.runs.Load())
	}
	if got := post(); got != 200 || script.runs.Load() != 2 {
		t.Errorf("status %d after %d runs", got, script.runs.Load())
	}
}

type closing struct {
	io.Reader
	closed atomic.Bool
}

func (c *closing) Close() error { c.closed.Store(true); return nil }

func TestBodyIsClosedOnFailure(t *testing.T) {
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{}, errors.New("broken") })
	body := &closing{Reader: strings.NewReader("body")}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1", body)
	if _, err := source.Wrap(nil).RoundTrip(request); err == nil || err.Error() != "broken" || !body.closed.Load() {
		t.Errorf("error %v, body closed: %v", err, body.closed.Load())
	}
}

// A new certificate takes new connections; what was going on goes on, and its connection is closed when it has ended.
func TestRotationDrains(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		finish := make(chan bool)
		s := serve(t, http2, func(r *http.Request) bool { return true })
		watch := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/watch" {
				watch.ServeHTTP(w, r)
				return
			}
			fmt.Fprintf(w, "%s begins\n", common(r))
			w.(http.Flusher).Flush()
			<-finish
			fmt.Fprintf(w, "%s ends\n", common(r))
		})
		source, script, clock := scripted(t, execcredential.Options{}, nil)
		script.next = func(run int) (execcredential.Material, error) {
			return execcredential.Material{Token: name(run), Certificate: s.pair(t, "cert-"+name(run)), Expires: clock.Now().Add(time.Hour)}, nil
		}
		client := &http.Client{Transport: source.Transport(s.transport())}
		watching, err := client.Get(s.URL + "/watch")
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := get(client, s.URL); got != "Bearer a cert-a " {
			t.Fatalf("the server saw %q, error %v", got, err)
		}
		clock.Advance(time.Hour)
		for range 3 {
			if got, _, err := get(client, s.URL); got != "Bearer b cert-b " {
				t.Fatalf("after the rotation the server saw %q, error %v", got, err)
			}
		}
		if !http2 { // the idle one of the first certificate; HTTP/2 has one connection, which is busy
			wait(t, "the idle connection to be closed", func() bool { return s.closed.Load() == 1 })
		}
		if s.closed.Load() > 1 || http2 && s.closed.Load() > 0 {
			t.Errorf("%d connections were closed", s.closed.Load())
		}
		finish <- true
		body, err := io.ReadAll(watching.Body)
		if err != nil || string(body) != "cert-a begins\ncert-a ends\n" {
			t.Errorf("the watch saw %q, error %v", body, err)
		}
		_ = watching.Body.Close()
		wait(t, "all connections but the last one to be closed", func() bool { return s.opened.Load()-s.closed.Load() == 1 })
	})
}

func wait(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// Under rotation all the time, no request fails, and none has the token of one credential and the certificate of another.
func TestTokenAndCertificateBelongTogether(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		server := serve(t, http2, all)
		source, script, clock := scripted(t, execcredential.Options{}, nil)
		script.next = func(run int) (execcredential.Material, error) {
			return execcredential.Material{Token: fmt.Sprintf("%d", run), Certificate: server.pair(t, fmt.Sprintf("%d", run)), Expires: clock.Now().Add(time.Minute)}, nil
		}
		client := &http.Client{Transport: source.Transport(server.transport())}
		stop := make(chan bool)
		var turning sync.WaitGroup
		turning.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					clock.Advance(20 * time.Second)
					if _, _, err := get(client, server.URL); err != nil {
						t.Error(err)
					}
				}
			}
		})
		for _, err := range storm(8, func() error {
			for range 40 {
				got, status, err := get(client, server.URL)
				var token, certificate string
				_, _ = fmt.Sscanf(got, "Bearer %s %s", &token, &certificate)
				if err != nil || status != 200 || token == "" || token != certificate {
					return fmt.Errorf("the server saw %q, status %d, error %w", got, status, err)
				}
			}
			return nil
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		close(stop)
		turning.Wait()
		if script.runs.Load() < 3 {
			t.Errorf("%d rotations only", script.runs.Load())
		}
	})
}

// A session that is resumed would be that of the old certificate.
func TestNoResumptionAcrossCertificates(t *testing.T) {
	server := serve(t, false, all)
	base := server.transport()
	base.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	source, script, clock := scripted(t, execcredential.Options{}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: server.pair(t, name(run)), Expires: clock.Now().Add(time.Hour)}, nil
	}
	client := &http.Client{Transport: source.Transport(base)}
	for _, want := range []string{" a ", " b "} {
		if got, _, err := get(client, server.URL); got != want {
			t.Errorf("the server saw %q, error %v, want %q", got, err, want)
		}
		clock.Advance(time.Hour)
	}
}

// A certificate that the server refuses with 401 is replaced, and the request sent again over a new connection.
func TestRejectedCertificate(t *testing.T) {
	server := serve(t, true, func(r *http.Request) bool { return common(r) == "b" })
	source, script, _ := scripted(t, execcredential.Options{}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: server.pair(t, name(run))}, nil
	}
	if got, status, err := get(&http.Client{Transport: source.Transport(server.transport())}, server.URL); got != " b " || status != 200 {
		t.Errorf("the server saw %q, status %d, error %v", got, status, err)
	}
}

func TestTLSConfig(t *testing.T) {
	server := serve(t, false, all)
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: server.pair(t, "jane")}, nil
	})
	base := server.transport()
	base.TLSClientConfig.GetClientCertificate = source.GetClientCertificate
	if got, _, err := get(&http.Client{Transport: source.Wrap(base)}, server.URL); got != " jane " {
		t.Errorf("the server saw %q, error %v", got, err)
	}
	base = &http.Transport{TLSClientConfig: source.Transport(server.transport()).TLSClientConfig()}
	if got, _, err := get(&http.Client{Transport: base}, server.URL); got != " jane " {
		t.Errorf("with TLSClientConfig the server saw %q, error %v", got, err)
	}
	tokenOnly, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	base = server.transport()
	base.TLSClientConfig.GetClientCertificate = tokenOnly.GetClientCertificate
	if got, _, err := get(&http.Client{Transport: tokenOnly.Wrap(base)}, server.URL); got != "Bearer abc nobody " {
		t.Errorf("without a certificate the server saw %q, error %v", got, err)
	}
	broken, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{}, errors.New("broken") })
	base = server.transport()
	base.TLSClientConfig.GetClientCertificate = broken.GetClientCertificate
	if _, _, err := get(&http.Client{Transport: base}, server.URL); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
}

func TestTokenSource(t *testing.T) {
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "abc", Expires: start.Add(time.Hour)}, nil
	})
	got, err := source.TokenSource(t.Context()).Token()
	if err != nil || got.AccessToken != "abc" || got.TokenType != "Bearer" || !got.Expiry.Equal(start.Add(time.Hour)) {
		t.Errorf("token %+v, error %v", got, err)
	}
}

func TestCloseClosesConnections(t *testing.T) {
	eachProtocol(t, func(t *testing.T, http2 bool) {
		server := serve(t, http2, all)
		pool, clock := newPool(t, execcredential.Options{})
		source := pool.Provider(&script{now: clock.Now, next: func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil }})
		client := &http.Client{Transport: source.Transport(server.transport())}
		if _, _, err := get(client, server.URL); err != nil {
			t.Fatal(err)
		}
		_ = pool.Close()
		wait(t, "the connection to be closed", func() bool { return server.closed.Load() == server.opened.Load() })
		if _, _, err := get(client, server.URL); !errors.Is(err, execcredential.ErrClosed) {
			t.Errorf("error %v", err)
		}
	})
}

// Several credentials of one account are tried in order, each with its own expiry and failures.
func TestSeveralCredentials(t *testing.T) {
	accepted := map[string]bool{"Bearer first": true, "Bearer second": true}
	var mu sync.Mutex
	accept := func(token string, yes bool) { mu.Lock(); accepted["Bearer "+token] = yes; mu.Unlock() }
	server := serve(t, true, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return accepted[r.Header.Get("Authorization")]
	})
	pool, clock := newPool(t, execcredential.Options{})
	broken := true
	first := &script{now: clock.Now, next: func(int) (execcredential.Material, error) {
		if broken {
			return execcredential.Material{}, errors.New("first is broken")
		}
		return execcredential.Material{Token: "first", Expires: clock.Now().Add(time.Hour)}, nil
	}}
	second := &script{now: clock.Now, next: func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "second", Expires: clock.Now().Add(10 * time.Hour)}, nil
	}}
	account := execcredential.InOrder(pool.Provider(first), pool.Provider(second))
	client := &http.Client{Transport: account.Transport(server.transport())}
	expect := func(what, want string, status int) {
		t.Helper()
		if got, s, err := get(client, server.URL); s != status || !strings.HasPrefix(got, want) {
			t.Fatalf("%s: the server saw %q, status %d, error %v", what, got, s, err)
		}
	}
	expect("the first fails", "Bearer second", 200)
	expect("the first rests", "Bearer second", 200)
	if first.runs.Load() != 1 {
		t.Errorf("%d runs of the first", first.runs.Load())
	}
	broken = false
	clock.Advance(time.Second)
	expect("the first is back", "Bearer first", 200)
	accept("first", false)
	expect("the first is refused", "Bearer second", 200)
	before := server.requests.Load()
	expect("the first is known to be refused", "Bearer second", 200)
	if got := server.requests.Load() - before; got != 1 {
		t.Errorf("%d requests were sent for one", got)
	}
	accept("second", false)
	expect("both are refused", "unauthorized", 401)
	expect("both are known to be refused", "unauthorized", 401)
	accept("first", true)
	clock.Advance(20 * time.Minute)
	expect("the first is accepted again", "Bearer first", 200)
	if second.runs.Load() != 3 && second.runs.Load() != 2 {
		t.Errorf("%d runs of the second", second.runs.Load())
	}

	nothing := execcredential.InOrder(
		pool.Provider(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return nil, errors.New("no A") })),
		pool.Provider(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return nil, errors.New("no B") })))
	if _, _, err := get(&http.Client{Transport: nothing.Transport(server.transport())}, server.URL); err == nil || !strings.Contains(err.Error(), "no A") || !strings.Contains(err.Error(), "no B") {
		t.Errorf("error %v", err)
	}
}

// A Transport that nobody has anymore leaves no connection.
func TestForgottenTransport(t *testing.T) {
	server := serve(t, true, all)
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	base := server.transport()
	first := source.Transport(base)
	if source.Transport(base) != first {
		t.Error("the same base gives two Transports")
	}
	if _, _, err := get(&http.Client{Transport: first}, server.URL); err != nil {
		t.Fatal(err)
	}
	first = nil
	wait(t, "the connection to be closed", func() bool { runtime.GC(); return server.closed.Load() == 1 })
}
