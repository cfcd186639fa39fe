// Package goaway has the clients of an HTTP/2 server leave before it stops. In go its connections, out comes a notice to each client that
// new requests belong on another connection; requests that are on their way are served all the same. It closes nothing and ends no request.
//
// The server of Go stops in one step: what arrives after its GOAWAY is dropped. A client that can send a request again does, but
// kube-apiserver can't where it forwards a body, and answers its client 503. RFC 9113, section 6.8, has the two steps that this makes.
package goaway

//lint:file-ignore SA1019 net/http serves HTTP/2 on no connection but its own, whose frames can't be followed; k8s.io/apiserver uses this package, too

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// notice is a GOAWAY frame whose last stream is the highest that there can be: all are served.
var notice = []byte{0, 0, 8, byte(http2.FrameGoAway), 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// Connections are those of one server that speak HTTP/2. The zero value has none.
type Connections struct {
	mu      sync.Mutex
	open    map[*connection]bool
	leaving bool
}

// Configure has a server speak HTTP/2, over connections that are known here.
func (c *Connections) Configure(server *http.Server, settings *http2.Server) error {
	if err := http2.ConfigureServer(server, settings); err != nil {
		return err
	}
	server.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, accepted *tls.Conn, handler http.Handler) {
		conn := &connection{Conn: accepted}
		c.add(conn)
		defer c.remove(conn)
		options := http2.ServeConnOpts{Handler: handler, BaseConfig: server}
		// net/http passes on the context of a connection in this way.
		if h, ok := handler.(interface{ BaseContext() context.Context }); ok {
			options.Context = h.BaseContext()
		}
		settings.ServeConn(conn, &options)
	}
	return nil
}

// Notify has all clients use other connections from now on, also those that connect later. It does not wait for them.
func (c *Connections) Notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	for conn := range c.open {
		go conn.notify() // one whose client reads nothing holds up no other
	}
}

// Left returns when all clients have closed their connections, or ctx is done. Some only close one when it has been idle for long.
func (c *Connections) Left(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for c.count() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

func (c *Connections) add(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*connection]bool{}
	}
	c.open[conn] = true
	conn.due = c.leaving
}

func (c *Connections) remove(conn *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// headerLength of a frame of HTTP/2: its first three bytes are the length of what follows the header.
const headerLength = 9

// connection knows where the frames end that are written to it.
type connection struct {
	*tls.Conn

	mu      sync.Mutex
	header  int  // bytes of a frame's header that were written, if not all were
	payload int  // bytes that are missing of the frame
	used    bool // the first answer was begun
	due     bool
}

func (c *connection) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.follow(p[:n])
	if err == nil && c.due {
		err = c.between()
	}
	return n, err
}

// notify writes the notice as soon as no frame is open. On a connection without a request it waits for the first answer: clients refuse a
// notice that comes before the settings, and one that comes before the request can make them lose its body.
func (c *connection) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = true
	_ = c.between() // the server finds out itself that a connection is broken
}

func (c *connection) between() error {
	if !c.used || c.header != 0 || c.payload != 0 {
		return nil
	}
	c.due = false
	_, err := c.Conn.Write(notice)
	return err
}

func (c *connection) follow(p []byte) {
	for len(p) > 0 {
		if c.header == 0 && c.payload > 0 {
			n := min(c.payload, len(p))
			c.payload, p = c.payload-n, p[n:]
			continue
		}
		if c.header < 3 {
			c.payload = c.payload<<8 | int(p[0])
		}
		if c.header == 3 && http2.FrameType(p[0]) == http2.FrameHeaders {
			c.used = true
		}
		c.header, p = (c.header+1)%headerLength, p[1:]
	}
}
