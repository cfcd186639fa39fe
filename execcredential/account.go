package execcredential

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
)

// Account is one or more sources of credentials that stand for the same account, in the order in which they are tried. Each keeps its
// own credential, expiry and failures. A source that has no credential to give, or whose credential the server answered with 401
// twice, is passed over for the next one, until it has another credential.
type Account struct {
	sources []*Source
	err     error // why it can't be used; there are no sources then
}

// NewAccount returns the account of these sources, which are tried in this order. If one of them is nil, or no Pool has made it, each use of the account is a *ConfigError.
func NewAccount(first *Source, more ...*Source) *Account {
	sources := append([]*Source{first}, more...)
	for i, s := range sources {
		if s == nil || s.pool == nil {
			return &Account{err: &ConfigError{Field: fmt.Sprintf("sources[%d]", i), Reason: s.check().(*ConfigError).Reason}}
		}
	}
	return &Account{sources: sources}
}

// Format names the programs for every verb.
func (a *Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "an account of %v", a.made().sources)
}

// made returns a, or an account of the same use if nothing has made it.
func (a *Account) made() *Account {
	if a == nil || len(a.sources) == 0 && a.err == nil {
		return &Account{err: &ConfigError{Field: "account", Reason: "is nil or empty; NewAccount makes one"}}
	}
	return a
}

// Get returns the credential of the first source that has one to give, or the errors of all.
func (a *Account) Get(ctx context.Context) (*Credential, error) {
	if a = a.made(); a.err != nil {
		return nil, a.err
	}
	var failures []error
	for _, s := range a.sources {
		credential, err := s.Get(ctx)
		if err == nil {
			return credential, nil
		}
		failures = append(failures, err)
		if ctx == nil || ctx.Err() != nil {
			break
		}
	}
	return nil, join(failures)
}

// Transport returns an http.RoundTripper that sends token and client certificate over connections of its own, which are made as those
// of base: proxy, dialer, certificate authorities, limits. Nil means http.DefaultTransport. Base itself stays as it is, and must not be
// changed anymore: the same base gives the same Transport, with its connections. Client certificates that base has already win over
// those of the account.
func (a *Account) Transport(base *http.Transport) *Transport {
	if base == nil {
		var ok bool
		if base, ok = http.DefaultTransport.(*http.Transport); !ok {
			base = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
		}
	}
	if a = a.made(); a.err != nil {
		return newTransport(a, base)
	}
	return a.sources[0].pool.transport(a, base)
}

// Wrap returns an http.RoundTripper that sends the token over base; nil means http.DefaultTransport. It is for round trippers that are not an *http.Transport; what
// they use for client certificates is their business, and can be GetClientCertificate. Base may be what the caller has put around a Transport of
// the same source, to see each request as it is sent, its Authorization header included: the Transport then shows the certificate of the
// credential that was chosen here.
func (a *Account) Wrap(base http.RoundTripper) http.RoundTripper { return newWrapper(a.made(), base) }

// GetClientCertificate is for a tls.Config. It returns the first certificate that the server accepts, and an empty one if there is
// none, as crypto/tls requires. The credential is fetched within the handshake: a client that has a deadline for handshakes, and can't
// use Transport, should call Get before.
func (a *Account) GetClientCertificate(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if a = a.made(); a.err != nil {
		return nil, a.err
	}
	if request == nil {
		return nil, &ConfigError{Field: "request", Reason: "is nil; a handshake of crypto/tls makes one"}
	}
	var failures []error
	var chosen *tls.Certificate
	for _, s := range a.sources {
		credential, err := s.Get(request.Context())
		if err != nil {
			failures = append(failures, err)
			continue
		}
		certificate := credential.Certificate()
		if certificate == nil {
			continue
		}
		presented := watched(certificate, func(err error) { s.signed(certificate, err) })
		if request.SupportsCertificate(certificate) == nil {
			return presented, nil
		}
		if chosen == nil {
			chosen = presented
		}
	}
	switch {
	case chosen != nil:
		return chosen, nil
	case len(failures) == len(a.sources):
		return nil, join(failures)
	}
	return &tls.Certificate{}, nil
}

// TokenSource is for what takes tokens of OAuth 2.0, as gRPC does. The end of ctx ends the waiting of every call. It does not know of
// a server that answers 401.
func (a *Account) TokenSource(ctx context.Context) oauth2.TokenSource { return tokenSource{a, ctx} }

type tokenSource struct {
	account *Account
	ctx     context.Context // oauth2.TokenSource leaves no other way in
}

func (t tokenSource) Token() (*oauth2.Token, error) {
	credential, err := t.account.Get(t.ctx)
	if err != nil {
		return nil, err
	}
	if credential.Token() == "" {
		return nil, errors.New("execcredential: the credential has no token: it is a client certificate, or a password")
	}
	return &oauth2.Token{AccessToken: credential.Token(), TokenType: "Bearer", Expiry: credential.Expires()}, nil
}

func join(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	return errors.Join(failures...)
}

// Transport is Account.Transport for s alone.
func (s *Source) Transport(base *http.Transport) *Transport { return NewAccount(s).Transport(base) }

// Wrap is Account.Wrap for s alone.
func (s *Source) Wrap(base http.RoundTripper) http.RoundTripper { return NewAccount(s).Wrap(base) }

// GetClientCertificate is Account.GetClientCertificate for s alone.
func (s *Source) GetClientCertificate(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return NewAccount(s).GetClientCertificate(request)
}

// TokenSource is Account.TokenSource for s alone.
func (s *Source) TokenSource(ctx context.Context) oauth2.TokenSource {
	return NewAccount(s).TokenSource(ctx)
}
