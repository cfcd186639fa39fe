package serving

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// kept are the connections of HTTP/1 that clients keep. To close one loses the request that is on its way, and a client can't send that again if
// it changes something; so an answer marks itself as the last one. On HTTP/2 a client learns which requests were dropped, and repeats them.
type kept struct {
	leaving atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]bool
	left chan struct{} // closed when none is open; made by leave
}

// follow is the ConnState of a server.
func (k *kept) follow(conn net.Conn, state http.ConnState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch state {
	case http.StateActive:
		if encrypted, ok := conn.(*tls.Conn); ok && encrypted.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
			return
		}
		if k.open == nil {
			k.open = map[net.Conn]bool{}
		}
		k.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(k.open, conn)
		k.signal()
	}
}

// leaveBy has each answer end its connection, from leave on.
func (k *kept) leaveBy(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 1 && k.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// leave returns a channel that is closed when every connection has ended.
func (k *kept) leave() <-chan struct{} {
	k.leaving.Store(true)
	k.mu.Lock()
	defer k.mu.Unlock()
	left := make(chan struct{})
	k.left = left
	k.signal()
	return left
}

// signal is called with mu held.
func (k *kept) signal() {
	if k.left != nil && len(k.open) == 0 {
		close(k.left)
		k.left = nil
	}
}
