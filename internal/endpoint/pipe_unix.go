//go:build unix

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Listen implements Endpoint.
func (p Pipe) Listen(context.Context) (net.Listener, error) {
	return nil, fmt.Errorf("listen on %s: %w", p, errors.ErrUnsupported)
}

// Dial implements Endpoint.
func (p Pipe) Dial(context.Context) (net.Conn, error) {
	return nil, fmt.Errorf("dial %s: %w", p, errors.ErrUnsupported)
}
