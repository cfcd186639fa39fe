package execcredential

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// handshakes are those of one request, with a key that is in a device. A connection is made by a goroutine of net/http, and crypto/tls
// keeps the text alone of a key's error. That text is not enough to find it again: a request that was sent, and must not be sent twice,
// may end with the same words. So both are remembered, the errors of the key and those of handshakes.
type handshakes struct {
	mu       sync.Mutex
	unsigned []error
	failed   []error
}

type handshakesKey struct{}

// watchHandshakes returns request with a context that the handshakes for it know.
func watchHandshakes(request *http.Request) (*http.Request, *handshakes) {
	h := &handshakes{}
	ctx := context.WithValue(request.Context(), handshakesKey{}, h)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{TLSHandshakeDone: func(_ tls.ConnectionState, err error) { h.ended(err) }})
	return request.WithContext(ctx), h
}

// handshakesOf are those that the handshake with the context ctx belongs to, or nil.
func handshakesOf(ctx context.Context) *handshakes {
	h, _ := ctx.Value(handshakesKey{}).(*handshakes)
	return h
}

// signed records the result of a key's signature.
func (h *handshakes) signed(err error) {
	if h == nil || err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsigned = append(h.unsigned, err)
}

func (h *handshakes) ended(err error) {
	if err == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}

// of is a *SignError if err, with which the request ended, is that of a handshake in which the key did not sign; else err.
func (h *handshakes) of(err error) error {
	if h == nil || err == nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, failed := range h.failed {
		if !errors.Is(err, failed) {
			continue
		}
		for _, unsigned := range h.unsigned {
			if strings.Contains(err.Error(), unsigned.Error()) {
				return &SignError{Err: unsigned}
			}
		}
	}
	return err
}
