package execcredential

import (
	"context"
	"net/http"
)

// wrapper is Account.Wrap.
type wrapper struct {
	presenter *presenter
	base      http.RoundTripper
}

func newWrapper(a *Account, base http.RoundTripper) *wrapper {
	if t, ok := base.(*http.Transport); base == nil || ok && t == nil {
		base = http.DefaultTransport
	}
	return &wrapper{base: base, presenter: newPresenter(a, func(r *http.Request, i int, c *Credential) (*http.Response, error) {
		if c.Certificate() != nil {
			r = r.WithContext(context.WithValue(r.Context(), choiceKey{}, &choice{a.sources[i], c, r.URL.Host}))
		}
		return base.RoundTrip(r)
	})}
}

func (w *wrapper) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.presenter.roundTrip(request)
}

// CloseIdleConnections closes those of the wrapped round tripper.
func (w *wrapper) CloseIdleConnections() {
	if closer, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// choice is the credential that a wrapper has chosen for a request to server. A Transport of the same source further in shows its certificate,
// and chooses nothing itself.
type choice struct {
	source     *Source
	credential *Credential
	server     string
}

type choiceKey struct{}

// chosen returns the credential that was chosen for request, and the index of its source; nil if none was.
func (a *Account) chosen(request *http.Request) (*Credential, int) {
	if request == nil || request.URL == nil {
		return nil, 0
	}
	if c, ok := request.Context().Value(choiceKey{}).(*choice); ok && c.server == request.URL.Host && overTLS(request.URL) {
		for i, s := range a.sources {
			if s == c.source {
				return c.credential, i
			}
		}
	}
	return nil, 0
}
