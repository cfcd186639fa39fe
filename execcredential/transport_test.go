package execcredential_test

import (
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
		return "anonymous"
	}
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

func (s *server) transport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.authority.Pool()}, ForceAttemptHTTP2: s.EnableHTTP2}
}

func (s *server) pair(t testing.TB, name string) *tls.Certificate {
	t.Helper()
	pair := need(tls.X509KeyPair(pemPair(s.authority.Issue(name, start.Add(-time.Hour), start.Add(1000*time.Hour)))))(t)
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
		response := need(rt.RoundTrip(request))(t)
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != "Bearer abc anonymous " {
			t.Errorf("%s: the server saw %q", name, body)
		}
		if len(request.Header) != 1 || response.Request != request {
			t.Errorf("%s: the caller's request has the header %v, that of the response %v", name, request.Header, response.Request.Header)
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
	response := need(source.Transport(server.transport()).RoundTrip(request))(t)
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if string(body) != "Basic xyz anonymous " || script.runs.Load() != 0 {
		t.Errorf("the server saw %q after %d runs", body, script.runs.Load())
	}

	base := server.transport()
	base.TLSClientConfig.Certificates = []tls.Certificate{*server.pair(t, "static")}
	if got, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL); got != "Bearer abc static " {
		t.Errorf("with a certificate of the caller the server saw %q, error %v", got, err)
	}
}

func TestRedirectsGetNoCredential(t *testing.T) {
	var elsewhere, back string
	seen := make(chan string, 10)
	away := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
		if r.URL.Path == "/1" {
			http.Redirect(w, r, "/2", http.StatusFound)
		}
		if r.URL.Path == "/2" {
			http.Redirect(w, r, back, http.StatusFound)
		}
	}))
	defer away.Close()
	elsewhere = away.URL + "/1"
	home := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.Path + " " + r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/home":
			http.Redirect(w, r, "/same", http.StatusFound)
		case "/same":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		}
	}))
	defer home.Close()
	back = home.URL + "/back" // as another server chose
	base := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil })
	if _, _, err := get(&http.Client{Transport: source.Transport(base)}, home.URL+"/home"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/home Bearer abc", "/same Bearer abc", "/1 ", "/2 ", "/back "} {
		if got := <-seen; got != want {
			t.Errorf("seen %q, want %q", got, want)
		}
	}
}

type closing struct {
	io.Reader
	closed atomic.Bool
}

func (c *closing) Read(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, errors.New("the body is closed")
	}
	return c.Reader.Read(p)
}

func (c *closing) Close() error { c.closed.Store(true); return nil }

func TestBodyIsClosedOnFailure(t *testing.T) {
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{}, errors.New("broken") })
	body := &closing{Reader: strings.NewReader("body")}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://127.0.0.1:1", body)
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
		watching := need(client.Get(s.URL + "/watch"))(t)
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
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
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
			expect(t, err)
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
	if got, _, err := get(&http.Client{Transport: tokenOnly.Wrap(base)}, server.URL); got != "Bearer abc anonymous " {
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
		source := pool.SourceOf(&script{now: clock.Now, next: func(int) (execcredential.Material, error) { return execcredential.Material{Token: "abc"}, nil }})
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

// A Transport that is no longer referenced leaves no connection.
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
