package guard

import (
	"net"
	"sync"
)

// accepting is a listener that waits for a server to read from what it has accepted. A gRPC server that is to stop closes connections that it has not
// begun to read from, and the call for which a kubelet has made one would fail.
type accepting struct {
	net.Listener
	unread sync.WaitGroup
}

// Accept implements net.Listener.
func (a *accepting) Accept() (net.Conn, error) {
	connection, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	a.unread.Add(1)
	return &accepted{Conn: connection, begun: sync.OnceFunc(a.unread.Done)}, nil
}

// accepted is one of its connections.
type accepted struct {
	net.Conn
	begun func()
}

// Read implements net.Conn.
func (a *accepted) Read(into []byte) (int, error) {
	a.begun()
	return a.Conn.Read(into)
}

// Close implements net.Conn.
func (a *accepted) Close() error {
	a.begun()
	return a.Conn.Close()
}
