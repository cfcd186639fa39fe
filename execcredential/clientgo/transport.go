package clientgo

import (
	"crypto/tls"
	"errors"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"

	"github.com/credence-id/credence/execcredential"
)

// presenter wraps the round trippers that client-go makes of a config.
type presenter struct {
	source       *execcredential.Source
	ownTransport bool // of the caller's making, whose TLS is not ours to change
}

// around wraps what client-go makes of a config: connections on the inside, the wrappers of the caller around them, which see each request as
// it is sent, its Authorization header included, and what chooses credentials on the outside. So it is with client-go's own plugin.
func (p presenter) around(caller transport.WrapperFunc) transport.WrapperFunc {
	return func(rt http.RoundTripper) http.RoundTripper {
		inner := p.connections(rt)
		if _, whole := inner.(*roundTripper); whole && caller == nil {
			return inner
		}
		if caller != nil {
			inner = caller(inner)
		}
		return &wrapped{RoundTripper: p.source.Wrap(inner), base: inner}
	}
}

// connections shows certificates to servers.
func (p presenter) connections(rt http.RoundTripper) http.RoundTripper {
	if base := httpTransport(rt); base != nil {
		return &roundTripper{Transport: p.source.Transport(base), base: rt}
	}
	if p.ownTransport {
		return tokensOnly{rt}
	}
	// A round tripper that upgrades connections makes its own, of a TLS configuration that was made for it alone.
	if holder, ok := rt.(utilnet.TLSClientConfigHolder); ok {
		if config := holder.TLSClientConfig(); config != nil && config.GetClientCertificate == nil && len(config.Certificates) == 0 {
			config.GetClientCertificate = p.source.GetClientCertificate
		}
	}
	return rt
}

// tokensOnly is a round tripper of the caller's making, which connects in an unknown way. A client certificate would not be shown,
// and the server would take the request for another client's.
type tokensOnly struct{ http.RoundTripper }

// RoundTrip refuses a request that has no token, except after a redirect, which is to have none.
func (t tokensOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" || r.Response != nil {
		return t.RoundTripper.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, errCertificate
}

var errCertificate = errors.New("execcredential/clientgo: the credential is a client certificate without a token, and rest.Config.Transport is not an *http.Transport, so that nothing shows it to the server: use one, or a program that gives tokens")

func httpTransport(rt http.RoundTripper) *http.Transport {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return t
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return nil
		}
	}
}

// roundTripper is a Transport that client-go's tools can look into. It keeps what it was made of alive: client-go gives the same one
// for an equal config only as long as it is referenced.
type roundTripper struct {
	*execcredential.Transport
	base http.RoundTripper
}

var (
	_ utilnet.RoundTripperWrapper   = &roundTripper{}
	_ utilnet.TLSClientConfigHolder = &roundTripper{}
	_ utilnet.RoundTripperWrapper   = &wrapped{}
)

// WrappedRoundTripper is for finding the dialer.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.base }

// TLSClientConfig has the client certificate, unlike that of the wrapped one.
func (r *roundTripper) TLSClientConfig() *tls.Config { return r.Transport.TLSClientConfig() }

// wrapped sends tokens over a round tripper that makes its own connections.
type wrapped struct {
	http.RoundTripper
	base http.RoundTripper
}

func (w *wrapped) WrappedRoundTripper() http.RoundTripper { return w.base }
