package goaway

//lint:file-ignore SA1019 net/http serves HTTP/2 on no connection but its own, whose frames can't be followed; k8s.io/apiserver uses this package, too

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/credence-id/credence/test/testkit"
)

// forwarded is a body as a proxy has one: it can be sent once.
type forwarded struct{ io.Reader }

// A server that notifies its clients and then stops fails no request, also of a client that can't send one again.
func TestNoRequestFails(t *testing.T) {
	certificate := testkit.NewCertificate(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	var connections Connections
	listener := listen(t)
	body := strings.Repeat("an answer of several frames, so that some writes end within one", 200)
	server := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate.TLS()}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || r.ProtoMajor != 2 || r.Context().Value(http.LocalAddrContextKey) == nil {
				t.Errorf("%s, TLS %v, from %v", r.Proto, r.TLS, r.Context().Value(http.LocalAddrContextKey))
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, body)
		}),
	}
	testkit.Must(t, connections.Configure(server, &http2.Server{}))
	go func() { _ = server.ServeTLS(listener, "", "") }()

	// As behind a Service, new connections reach another server.
	other := &http.Server{TLSConfig: server.TLSConfig.Clone(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Replica", "other")
		server.Handler.ServeHTTP(w, r)
	})}
	replica := listen(t)
	go func() { _ = other.ServeTLS(replica, "", "") }()
	t.Cleanup(func() { _ = other.Close() })
	var away atomic.Bool
	client := &http.Client{Transport: &http2.Transport{
		TLSClientConfig: &tls.Config{RootCAs: certificate.Pool()},
		DialTLSContext: func(ctx context.Context, network, _ string, config *tls.Config) (net.Conn, error) {
			address := listener.Addr()
			if away.Load() {
				address = replica.Addr()
			}
			return (&tls.Dialer{Config: config}).DialContext(ctx, network, address.String())
		},
	}}

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var answered, moved atomic.Int64
	const clients = 8
	for range clients {
		running.Go(func() {
			for first := true; ctx.Err() == nil; {
				response, err := client.Post("https://"+listener.Addr().String(), "text/plain", forwarded{strings.NewReader("a body")})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || string(got) != body {
					t.Errorf("an answer of %d bytes: %v", len(got), err)
				}
				answered.Add(1)
				if first && response.Header.Get("Replica") != "" {
					first = false
					moved.Add(1)
				}
			}
		})
	}
	testkit.Eventually(t, "requests are answered", func() bool { return answered.Load() > 100 })
	away.Store(true)
	connections.Notify()
	testkit.Eventually(t, "the clients have left", func() bool { return moved.Load() == clients })
	testkit.Expect(t, server.Shutdown(t.Context()))
	cancel()
	running.Wait()
}

// aboutToServe calls a function when a connection is known here, and nothing was written to it.
type aboutToServe struct {
	http.Handler
	call func()
}

func (h aboutToServe) BaseContext() context.Context {
	h.call()
	return context.Background()
}

// A client whose connection is new when all are notified has its request answered, and sends the next one over another connection.
func TestNewConnections(t *testing.T) {
	for name, c := range map[string]struct{ early, accepted func(*Connections) }{
		"dialed before": {func(*Connections) {}, func(c *Connections) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for conn := range c.open {
				conn.notify()
			}
		}},
		"dialed after": {(*Connections).Notify, func(*Connections) {}},
	} {
		t.Run(name, func(t *testing.T) {
			var connections Connections
			certificate := testkit.NewCertificate(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
			server := &http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate.TLS()}}, Handler: http.NotFoundHandler()}
			testkit.Must(t, connections.Configure(server, &http2.Server{}))
			serve := server.TLSNextProto[http2.NextProtoTLS]
			server.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, conn *tls.Conn, handler http.Handler) {
				serve(server, conn, aboutToServe{handler, func() { c.accepted(&connections) }})
			}
			listener := listen(t)
			go func() { _ = server.ServeTLS(listener, "", "") }()
			t.Cleanup(func() { _ = server.Close() })
			c.early(&connections)

			client := &http.Client{Transport: &http2.Transport{TLSClientConfig: &tls.Config{RootCAs: certificate.Pool()}}}
			ask := func() (reused bool) {
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }})
				request := testkit.Need(http.NewRequestWithContext(ctx, "POST", "https://"+listener.Addr().String(), forwarded{strings.NewReader("a body")}))(t)
				response := testkit.Need(client.Do(request))(t)
				_ = response.Body.Close()
				return reused
			}
			ask()
			testkit.Eventually(t, "the client uses another connection", func() bool { return !ask() })
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener := testkit.Need(net.Listen("tcp", "127.0.0.1:0"))(t)
	return listener
}

// Wherever writes are cut, the end of each frame is found.
func TestFrames(t *testing.T) {
	var stream []byte
	ends := map[int]bool{0: true}
	for _, length := range []int{0, 8, 300, 70000, 0, 1} {
		stream = append(stream, byte(length>>16), byte(length>>8), byte(length), 0, 0, 0, 0, 0, 1)
		stream = append(stream, make([]byte, length)...)
		ends[len(stream)] = true
	}
	for _, step := range []int{1, 2, 5, 9, 17, 4096} {
		c := &connection{}
		for at := 0; at < len(stream); {
			end := min(at+step, len(stream))
			c.follow(stream[at:end])
			at = end
			if got := c.header == 0 && c.payload == 0; got != ends[at] {
				t.Fatalf("writes of %d bytes: the end of a frame at %d: %t, want %t", step, at, got, ends[at])
			}
		}
	}
}
