package network

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/credence-id/credence/devcluster/internal/tunnel"
)

// Settings is what differs from one node to the next.
type Settings struct {
	// Folder has the sockets.
	Folder string
	// Nft is the path of the program nft.
	Nft string
	// Shared are ports of the machine's 127.0.0.1 that Node has, too.
	Shared []int
}

// own marks connections that are not redirected; the bit that kube-proxy uses is another.
const own = 1

// Start makes the network of the namespace that this process is in, and lets connections through in both directions until stop is
// called.
//
// To the node's own processes and pods with hostNetwork, 127.0.0.1 is both the node's and the machine's: a connection is the
// machine's where nothing listens on the node.
func Start(settings Settings) (stop func(), err error) {
	var listeners []net.Listener
	stop = func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if err := addresses(); err != nil {
		return nil, fmt.Errorf("make the node's network: %w", err)
	}
	serve := func(listener net.Listener, err error, handle func(net.Conn)) error {
		if err == nil {
			listeners = append(listeners, listener)
			go tunnel.Accept(listener, handle)
		}
		return err
	}
	loopback, err := net.Listen("tcp", "127.0.0.1:0")
	if err := serve(loopback, err, settings.relayLoopback); err != nil {
		return nil, fmt.Errorf("relay loopback connections: %w", err)
	}
	for _, port := range settings.Shared {
		port := strconv.Itoa(port)
		listener, err := net.Listen("tcp", net.JoinHostPort(Node, port))
		if err := serve(listener, err, func(client net.Conn) { settings.relay(client, net.JoinHostPort("127.0.0.1", port), false) }); err != nil {
			return nil, fmt.Errorf("relay port %s: %w", port, err)
		}
	}
	node, err := tunnel.Listen(NodeSocket(settings.Folder))
	if err != nil {
		return nil, err
	}
	listeners = append(listeners, node)
	go tunnel.Serve(node, func(ctx context.Context, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
	return stop, settings.redirectLoopback(loopback.Addr().(*net.TCPAddr).Port)
}

// addresses gives the namespace its loopback and the node its address, and lets packets of pods through.
func addresses() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	address, err := netlink.ParseAddr(Node + "/32")
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(loopback, address); err != nil {
		return err
	}
	// Without a route the kernel refuses a connection of the node before kube-proxy's rules see it.
	_, services, err := net.ParseCIDR(ServiceCIDR)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: services, Src: address.IP}); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// redirectLoopback sends TCP connections with any loopback address to the relay at port, save for the relay's own.
func (s Settings) redirectLoopback(port int) error {
	return nft(s.Nft, fmt.Sprintf(`table ip credence {
	chain output {
		type nat hook output priority -110;
		ip daddr 127.0.0.0/8 meta l4proto tcp meta mark != %d redirect to :%d
	}
}
`, own, port))
}

// nft applies rules in the network namespace of the calling thread.
func nft(program, rules string) error {
	command := exec.Command(program, "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("set packet filter rules: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (s Settings) relayLoopback(client net.Conn) {
	target, err := originalDestination(client.(*net.TCPConn))
	// A connection with the relay itself would be relayed without end.
	if err != nil || target.String() == client.LocalAddr().String() {
		return
	}
	s.relay(client, target.String(), true)
}

// relay connects client with an address of the node, if onNode, or else of the machine.
func (s Settings) relay(client net.Conn, address string, onNode bool) {
	server, err := s.dial(address, onNode)
	if err != nil {
		// As close as can be to a connection that was refused.
		_ = client.(*net.TCPConn).SetLinger(0)
		return
	}
	defer server.Close()
	tunnel.Join(client, server)
}

func (s Settings) dial(address string, onNode bool) (net.Conn, error) {
	if onNode {
		marked := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
			var err error
			return errors.Join(raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, own) }), err)
		}}
		conn, err := marked.Dial("tcp", address)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err
		}
	}
	return tunnel.Dial(context.Background(), HostSocket(s.Folder), address)
}

// originalDestination is where a connection was to go before it was redirected (SO_ORIGINAL_DST, a sockaddr_in).
func originalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var found *unix.IPv6Mreq // the one function of the package that reads as many bytes
	var getErr error
	if err := raw.Control(func(fd uintptr) {
		found, getErr = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
	}); err != nil {
		return netip.AddrPort{}, err
	}
	if getErr != nil {
		return netip.AddrPort{}, getErr
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(found.Multiaddr[4:8])), binary.BigEndian.Uint16(found.Multiaddr[2:4])), nil
}
