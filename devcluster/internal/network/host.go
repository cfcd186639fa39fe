package network

import (
	"context"
	"net"
	"net/netip"

	"github.com/credence-id/credence/devcluster/internal/tunnel"
)

// Host serves HostSocket until the returned listener is closed.
func Host(folder string) (net.Listener, error) {
	listener, err := tunnel.Listen(HostSocket(folder))
	if err != nil {
		return nil, err
	}
	go tunnel.Serve(listener, func(ctx context.Context, address string) (net.Conn, error) {
		if onNode(address) {
			return tunnel.Dial(ctx, NodeSocket(folder), address)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
	return listener, nil
}

// onNode reports whether an address is one of the node's network. A name, such as that of a Service of type ExternalName, is not.
func onNode(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && !at.Addr().Unmap().IsLoopback()
}
