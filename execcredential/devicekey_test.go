package execcredential_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

var errAway = errors.New("token was removed")

// opened is one session with a device: once that is over, the key is found again only by another session.
type opened struct {
	*device
	over atomic.Bool
}

func (o *opened) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	if o.over.Load() {
		return nil, errAway
	}
	return o.device.Sign(random, digest, options)
}

// A device that goes away fails requests by a typed error, with nothing sent, and works again when the provider finds it.
func TestDeviceThatWasTakenAway(t *testing.T) {
	for what, most := range map[string]uint16{"TLS 1.3": tls.VersionTLS13, "TLS 1.2": tls.VersionTLS12} {
		t.Run(what, func(t *testing.T) {
			server := serve(t, true, all)
			device := newDevice(t)
			block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
			var session *opened
			away := false
			source, provider, clock := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
				if session != nil {
					session.over.Store(true) // as one that is closed before the next is opened
				}
				if away {
					return execcredential.Material{}, errAway
				}
				session = &opened{device: device}
				return execcredential.Material{Token: "token", Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, nil
			})
			base := server.transport()
			base.TLSClientConfig.MaxVersion = most
			base.DisableKeepAlives = true
			client := &http.Client{Transport: source.Transport(base)}
			works := func(runs int32) {
				t.Helper()
				if got, _, err := get(client, server.URL); got != "Bearer token device " || provider.runs.Load() != runs {
					t.Fatalf("the server saw %q, error %v, after %d runs, want %d", got, err, provider.runs.Load(), runs)
				}
			}
			works(1)

			session.over.Store(true)
			clock.Advance(time.Second) // past the pause between successes
			works(2)                   // by another session, with the same certificate

			session.over.Store(true)
			away = true
			clock.Advance(time.Second)
			_, _, err := get(client, server.URL)
			var sign *execcredential.SignError
			if !errors.As(err, &sign) || sign.Err != errAway || !strings.Contains(err.Error(), "did not sign") {
				t.Fatalf("error %v, want a SignError", err)
			}
			for range 10 {
				clock.Advance(time.Second)
				if _, _, err := get(client, server.URL); !errors.Is(err, errAway) || errors.As(err, &sign) {
					t.Fatalf("error %v, want that of the provider", err)
				}
			}
			if server.requests.Load() != 2 {
				t.Errorf("the server got %d requests, want the 2 that had a certificate", server.requests.Load())
			}
			away = false
			clock.Advance(time.Minute)
			works(provider.runs.Load() + 1)
			need(source.Refresh(context.Background()))(t)
			works(provider.runs.Load()) // not by the session that the refresh has ended
		})
	}
}

// An error that is not about signing stays as it is, also for a key that did not sign before.
func TestOtherErrorsStay(t *testing.T) {
	server := serve(t, true, all)
	device := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	session := &opened{device: device}
	credential := need(execcredential.NewCredential(execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, start))(t)
	pool, clock := newPool(t, execcredential.Options{})
	source := pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) { return credential, nil }))
	client := &http.Client{Transport: source.Transport(server.transport())}
	session.over.Store(true)
	var sign *execcredential.SignError
	if _, _, err := get(client, server.URL); !errors.As(err, &sign) {
		t.Fatalf("error %v, want a SignError", err)
	}
	server.Close()
	session.over.Store(false)
	clock.Advance(time.Second) // past the pause between successes
	if _, _, err := get(client, server.URL); err == nil || errors.As(err, &sign) {
		t.Errorf("error %v of a server that is gone, want none about signing", err)
	}
}

// A key for a caller that makes the handshake: it is obtained again after it did not sign, and one in memory is handed out as it is.
func TestCallbackOfADevice(t *testing.T) {
	server := serve(t, true, all)
	device := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	session := &opened{device: device}
	source, provider, clock := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, nil
	})
	base := server.transport()
	base.TLSClientConfig.GetClientCertificate = source.GetClientCertificate
	session.over.Store(true)
	if _, _, err := get(&http.Client{Transport: base}, server.URL); err == nil || !strings.Contains(err.Error(), errAway.Error()) {
		t.Fatalf("error %v, want that of the device", err)
	}
	session.over.Store(false)
	clock.Advance(time.Second) // past the pause between successes
	if got, _, err := get(&http.Client{Transport: base}, server.URL); got != " device " || provider.runs.Load() != 2 {
		t.Errorf("the server saw %q, error %v, after %d runs, want 2", got, err, provider.runs.Load())
	}

	pair := server.pair(t, "memory")
	inMemory, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: pair}, nil
	})
	need(inMemory.Get(t.Context()))(t)
	request := &tls.CertificateRequestInfo{Version: tls.VersionTLS13, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}}
	if got, err := inMemory.GetClientCertificate(request); err != nil || got.PrivateKey != pair.PrivateKey {
		t.Errorf("a key in memory became another, error %v", err)
	}
}

// A failure of a key whose credential was replaced does not count for the new one.
func TestOldKeyThatDoesNotSign(t *testing.T) {
	server := serve(t, true, all)
	device := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	var session *opened
	source, provider, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		session = &opened{device: device}
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, nil
	})
	var old *tls.Certificate
	base := server.transport()
	base.TLSClientConfig.GetClientCertificate = func(request *tls.CertificateRequestInfo) (certificate *tls.Certificate, err error) {
		old, err = source.GetClientCertificate(request)
		return old, err
	}
	if _, _, err := get(&http.Client{Transport: base}, server.URL); err != nil {
		t.Fatal(err)
	}
	session.over.Store(true)
	need(source.Refresh(t.Context()))(t)
	if _, err := old.PrivateKey.(crypto.Signer).Sign(rand.Reader, make([]byte, 32), crypto.SHA256); !errors.Is(err, errAway) {
		t.Fatalf("error %v, want that of the device", err)
	}
	if _, err := source.Get(t.Context()); err != nil || provider.runs.Load() != 2 {
		t.Errorf("error %v after %d runs, want 2", err, provider.runs.Load())
	}
}

// onlyMessages signs messages and no digests, as some key management services do.
type onlyMessages struct{ *device }

func (onlyMessages) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("this device signs no digests")
}

func (o onlyMessages) SignMessage(random io.Reader, message []byte, options crypto.SignerOpts) ([]byte, error) {
	hash := options.HashFunc().New()
	hash.Write(message)
	return o.device.Sign(random, hash.Sum(nil), options)
}

func TestDeviceThatSignsMessages(t *testing.T) {
	server := serve(t, true, all)
	device := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: onlyMessages{device}}}, nil
	})
	if got, _, err := get(&http.Client{Transport: source.Transport(server.transport())}, server.URL); got != " device " {
		t.Errorf("the server saw %q, error %v", got, err)
	}
}

// A device without RSA-PSS leaves it out of the schemes of its certificate, which the library keeps.
func TestSchemesOfADeviceAreKept(t *testing.T) {
	server := serve(t, true, all)
	key := need(rsa.GenerateKey(rand.Reader, 2048))(t)
	device := &device{public: key.Public(), sign: func(digest []byte, o crypto.SignerOpts) ([]byte, error) {
		if _, pss := o.(*rsa.PSSOptions); pss {
			return nil, errors.New("this device knows no RSA-PSS")
		}
		return key.Sign(rand.Reader, digest, o)
	}}
	block, _ := pem.Decode([]byte(server.authority.IssueFor(device.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	certificate := &tls.Certificate{Certificate: [][]byte{bytes.Clone(block.Bytes)}, PrivateKey: device}
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Certificate: certificate}, nil
	})
	base := server.transport()
	base.TLSClientConfig.MaxVersion = tls.VersionTLS12
	if _, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL); err == nil || !strings.Contains(err.Error(), "knows no RSA-PSS") {
		t.Fatalf("error %v, want that of the device", err)
	}
	certificate.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PKCS1WithSHA256}
	need(source.Refresh(t.Context()))(t)
	if got, _, err := get(&http.Client{Transport: source.Transport(base)}, server.URL); got != " device " {
		t.Errorf("the server saw %q, error %v", got, err)
	}
}

// devices are a server, and a provider whose every session is a new one; each signs if signs returns true for it.
func devices(t *testing.T, signs func(session int) bool) (*server, *execcredential.Source, *script, *exectest.Clock) {
	t.Helper()
	server := serve(t, true, all)
	key := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(key.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	source, provider, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		session := &device{public: key.Public(), sign: func(digest []byte, o crypto.SignerOpts) ([]byte, error) {
			if !signs(run) {
				return nil, errAway
			}
			return key.sign(digest, o)
		}}
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, nil
	})
	return server, source, provider, clock
}

// A request whose key did not sign is sent by the next session, whatever its body: nothing of it was read. All of a storm share the run.
func TestSessionThatIsOverIsOpenedAgain(t *testing.T) {
	var over atomic.Int32
	server, source, provider, clock := devices(t, func(session int) bool { return session > int(over.Load()) })
	base := server.transport()
	base.DisableKeepAlives, base.ForceAttemptHTTP2 = true, false
	transport := source.Transport(base)
	post := func(body io.Reader, length int64) error {
		closes := &closing{Reader: body}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, closes)
		request.ContentLength = length
		response, err := transport.RoundTrip(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if got, _ := io.ReadAll(response.Body); string(got) != " device body" {
			return errors.New("the server saw " + string(got))
		}
		for !closes.closed.Load() { // HTTP/2 closes it when it likes
			runtime.Gosched()
		}
		return nil
	}
	for i, length := range []int64{4, -1} {
		must(t, post(strings.NewReader("body"), length))
		clock.Advance(time.Second) // past the pause between successes
		over.Add(1)
		for _, err := range storm(20, func() error { return post(strings.NewReader("body"), length) }) {
			expect(t, err)
		}
		if int(provider.runs.Load()) != i+2 {
			t.Errorf("%d runs, want %d", provider.runs.Load(), i+2)
		}
	}
}

// A device that never signs is opened as often as a server that answers 401 makes a program run. Every request gets the reason, and its
// body is closed.
func TestDeviceThatNeverSigns(t *testing.T) {
	server, source, provider, clock := devices(t, func(int) bool { return false })
	transport := source.Transport(server.transport())
	for i, c := range []struct {
		after time.Duration
		runs  int32
	}{{0, 2}, {9 * time.Second, 2}, {time.Second, 3}, {10 * time.Second, 3}, {10 * time.Second, 4}, {39 * time.Second, 4}, {time.Second, 5}} {
		clock.Advance(c.after)
		for _, err := range storm(20, func() error {
			body := &closing{Reader: strings.NewReader("body")}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
			_, err := transport.RoundTrip(request)
			if sign := (*execcredential.SignError)(nil); !errors.As(err, &sign) {
				return errors.Join(errors.New("no SignError"), err)
			}
			if !body.closed.Load() {
				return errors.New("the body was not closed")
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("step %d: %v", i, err)
			}
		}
		if provider.runs.Load() != c.runs {
			t.Fatalf("step %d: %d runs, want %d", i, provider.runs.Load(), c.runs)
		}
	}
	if server.requests.Load() != 0 {
		t.Errorf("the server got %d requests", server.requests.Load())
	}
}

// An account goes on with its next source when the key of the first does not sign, and comes back to it.
func TestNextSourceWhenADeviceIsAway(t *testing.T) {
	var works atomic.Bool
	server, first, provider, clock := devices(t, func(int) bool { return works.Load() })
	second, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { return execcredential.Material{Token: "second"}, nil })
	transport := execcredential.NewAccount(first, second).Transport(server.transport())
	post := func(want string) {
		t.Helper()
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, struct{ io.Reader }{strings.NewReader("body")})
		response := need(transport.RoundTrip(request))(t)
		defer response.Body.Close()
		if got, _ := io.ReadAll(response.Body); string(got) != want {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	}
	post("Bearer second anonymous body")
	handshakes := server.opened.Load()
	post("Bearer second anonymous body")
	if got := server.opened.Load() - handshakes; got != 0 || provider.runs.Load() != 2 {
		t.Errorf("%d handshakes for a key that is known not to sign, %d runs", got, provider.runs.Load())
	}
	works.Store(true)
	clock.Advance(10 * time.Second)
	post(" device body")
}

// Only the error of a handshake proves that nothing was sent, whatever the words of others are.
func TestErrorOfAHandshake(t *testing.T) {
	said, handshake := errors.New("EOF"), errors.New("tls: failed to sign handshake: EOF")
	var sign *execcredential.SignError
	if err := execcredential.SignErrorOf(said, handshake, handshake); !errors.As(err, &sign) || !errors.Is(err, said) {
		t.Errorf("error %v of the handshake, want a SignError", err)
	}
	for _, other := range []error{errors.New("EOF"), io.EOF, errors.New(handshake.Error())} {
		if err := execcredential.SignErrorOf(said, handshake, other); err != other {
			t.Errorf("error %v of something else, want it as it was", err)
		}
	}
}

// A request that was sent, and ends with the words of the device, is not sent again.
func TestWordsOfADevice(t *testing.T) {
	errEOF := errors.New("EOF")
	server := serve(t, false, all)
	key := newDevice(t)
	block, _ := pem.Decode([]byte(server.authority.IssueFor(key.Public(), "device", start.Add(-time.Hour), start.Add(time.Hour))))
	var over atomic.Bool
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		session := &device{public: key.Public(), sign: func(digest []byte, o crypto.SignerOpts) ([]byte, error) {
			if over.Load() {
				return nil, errEOF
			}
			return key.sign(digest, o)
		}}
		return execcredential.Material{Certificate: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: session}}, nil
	})
	arrived, end := make(chan bool), make(chan bool)
	var posts atomic.Int32
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		posts.Add(1)
		arrived <- true
		<-end
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close()
		}
	})
	client := &http.Client{Transport: source.Transport(server.transport())}
	sent := make(chan error, 1)
	go func() {
		_, err := client.Post(server.URL, "text/plain", strings.NewReader("body"))
		sent <- err
	}()
	<-arrived
	over.Store(true)
	var sign *execcredential.SignError
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the clock stands still in the pause between successes: a test that waits for its end would wait without one
		for source.Status().Waiting == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel()
	}()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if _, err := client.Do(request); !errors.As(err, &sign) {
		t.Errorf("error %v, want a SignError", err)
	}
	over.Store(false)
	end <- true
	if err := <-sent; err == nil || !strings.Contains(err.Error(), "EOF") || errors.As(err, &sign) || posts.Load() != 1 {
		t.Errorf("error %v after %d requests, want EOF, and no other request", err, posts.Load())
	}
}
