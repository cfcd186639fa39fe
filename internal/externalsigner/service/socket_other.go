//go:build !unix

package service

import (
	"context"
	"errors"
	"net"
)

// Listen refuses systems on which file modes do not control the access to a socket.
func Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.New("the external signer API needs the file modes of a Unix system")
}
