//go:build !unix

package unixsocket

import (
	"context"
	"errors"
	"net"
)

// Listen refuses systems on which file modes do not control the access to a socket.
func Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.New("sockets need the file modes of a Unix system")
}
