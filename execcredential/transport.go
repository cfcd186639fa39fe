package execcredential

import (
	"crypto/tls"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Transport is Account.Transport. A credential's token travels only over connections that were made with the same credential's
// certificate: every certificate has connections of its own. When a certificate is replaced, idle connections of the old one are
// closed, and busy ones when they have finished; watches go on for as long as the server lets them.
type Transport struct {
	presenter *presenter
	base      *http.Transport // never sends anything itself
	plain     bool            // base has client certificates, which win
	slots     slots
}

// slots has one for each source, and a last one for requests without a credential.
type slots []slot

// slot holds the connections of one source.
type slot struct {
	current, previous atomic.Pointer[generation]
	mu                sync.Mutex // of replacing
}

// generation is the connections that were made with one certificate, or without one.
type generation struct {
	certificate *tls.Certificate
	transport   *http.Transport
	retired     atomic.Bool
}

func newTransport(a *Account, base *http.Transport) *Transport {
	t := &Transport{base: template(base), slots: make(slots, len(a.sources)+1)}
	if c := t.base.TLSClientConfig; c != nil && (len(c.Certificates) > 0 || c.GetClientCertificate != nil) {
		t.plain = true
	}
	t.presenter = newPresenter(a, t.send)
	return t
}

// template copies base so that copies of the copy share nothing. A transport that golang.org/x/net/http2 was set up for would lead all
// its copies to one pool of HTTP/2 connections.
func template(base *http.Transport) *http.Transport {
	copied := base.Clone()
	if _, h2 := base.TLSNextProto["h2"]; h2 {
		copied.TLSNextProto, copied.ForceAttemptHTTP2 = nil, true
	}
	if copied.HTTP2 == nil {
		// Without pings, a connection whose other end is gone is used until TCP gives up on it, which takes a quarter of an hour.
		copied.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	}
	return copied
}

// RoundTrip sends a copy of request with the account's credential, and once more with another one if the server answers 401, or if the
// key of the certificate, in a device, does not sign. A request that has an Authorization header already is sent as it is; if it comes from a
// Wrap of the same source, with the certificate that belongs to it.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t == nil || t.presenter == nil {
		closeBody(request)
		return nil, errEmptyTransport
	}
	if credential, i := t.presenter.account.chosen(request); credential != nil {
		return t.send(request, i, credential)
	}
	return t.presenter.roundTrip(request)
}

var errEmptyTransport = &ConfigError{Field: "transport", Reason: "is nil or empty; Source.Transport and Account.Transport return one"}

// CloseIdleConnections closes the connections without a request.
func (t *Transport) CloseIdleConnections() {
	if t == nil {
		return
	}
	for g := range t.slots.generations {
		g.transport.CloseIdleConnections()
	}
}

// TLSClientConfig is the TLS configuration of a connection that is made now, for those who make their own, as upgrades to other
// protocols do.
func (t *Transport) TLSClientConfig() *tls.Config {
	config := &tls.Config{}
	if t == nil || t.presenter == nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, errEmptyTransport }
		return config
	}
	if t.base.TLSClientConfig != nil {
		config = t.base.TLSClientConfig.Clone()
	}
	if !t.plain {
		config.GetClientCertificate = t.presenter.account.GetClientCertificate
	}
	return config
}

// retire is CloseIdleConnections, also for connections that become idle later.
func (s slots) retire() {
	for g := range s.generations {
		g.retire()
	}
}

func (s slots) generations(yield func(*generation) bool) {
	for i := range s {
		for _, g := range []*generation{s[i].current.Load(), s[i].previous.Load()} {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

func (t *Transport) send(request *http.Request, i int, credential *Credential) (*http.Response, error) {
	if credential == nil {
		return t.slots[len(t.slots)-1].generation(t.base, nil, true, nil).roundTrip(request)
	}
	certificate := credential.certificate
	if t.plain {
		certificate = nil
	}
	source := t.presenter.account.sources[i]
	held := source.current.Load()
	latest := held != nil && held.Credential == credential
	return t.slots[i].generation(t.base, certificate, latest, source).roundTrip(request)
}

// generation returns the connections for certificate. A request whose credential was replaced meanwhile, which is not the latest, still
// finds those of its own. The source gets the results of signatures by the key of certificate.
func (s *slot) generation(base *http.Transport, certificate *tls.Certificate, latest bool, source *Source) *generation {
	if g := s.current.Load(); g.serves(certificate) {
		return g
	}
	if g := s.previous.Load(); !latest && g.serves(certificate) {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	if old.serves(certificate) {
		return old
	}
	g := newGeneration(base, certificate, source)
	s.current.Store(g)
	if old != nil {
		s.previous.Store(old)
		old.retire()
	}
	return g
}

func newGeneration(base *http.Transport, certificate *tls.Certificate, source *Source) *generation {
	g := &generation{certificate: certificate, transport: base.Clone()}
	if certificate == nil {
		return g
	}
	config := g.transport.TLSClientConfig
	if config == nil {
		config = &tls.Config{}
		g.transport.TLSClientConfig = config
	}
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return watched(certificate, func(err error) {
			handshakesOf(request.Context()).signed(err)
			source.signed(certificate, err)
		}), nil
	}
	if config.ClientSessionCache != nil {
		// A session that is resumed is that of the certificate it began with.
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return g
}

// serves is about the certificate alone, unless its key is in a device: that of a new credential may be another way to the same key,
// and the old one closed.
func (g *generation) serves(certificate *tls.Certificate) bool {
	return g != nil && (g.certificate == certificate || sameCertificate(g.certificate, certificate) && !inDevice(certificate))
}

func (g *generation) retire() {
	g.retired.Store(true)
	g.transport.CloseIdleConnections()
}

func (g *generation) roundTrip(request *http.Request) (*http.Response, error) {
	var handshakes *handshakes
	if inDevice(g.certificate) {
		request, handshakes = watchHandshakes(request)
	}
	response, err := g.transport.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		g.done()
		return response, handshakes.of(err)
	}
	response.Body = &body{ReadCloser: response.Body, generation: g}
	return response, nil
}

func (g *generation) done() {
	if g.retired.Load() {
		g.transport.CloseIdleConnections()
	}
}

// body reports to its generation when a response has been read.
type body struct {
	io.ReadCloser
	generation *generation
	closed     atomic.Bool
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	if !b.closed.Swap(true) {
		b.generation.done()
	}
	return err
}
