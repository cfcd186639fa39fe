package network

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/devcluster/internal/tunnel"
)

// greeting listens on a free port of the loopback, and greets each client by name.
func greeting(t *testing.T, name string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go tunnel.Accept(listener, func(c net.Conn) { _, _ = io.WriteString(c, name) })
	return listener.Addr().String()
}

func heard(t *testing.T, connection net.Conn, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	text, err := io.ReadAll(connection)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// The machine connects with its own loopback, and the node with all other addresses.
func TestHostConnects(t *testing.T) {
	folder := t.TempDir()
	host, err := Host(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	node, err := tunnel.Listen(NodeSocket(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	kubelet := greeting(t, "kubelet")
	go tunnel.Serve(node, func(ctx context.Context, address string) (net.Conn, error) {
		if address != Node+":10250" {
			t.Errorf("the node is to connect with %s", address)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", kubelet)
	})
	for address, want := range map[string]string{greeting(t, "webhook"): "webhook", Node + ":10250": "kubelet"} {
		connection, err := tunnel.Dial(t.Context(), HostSocket(folder), address)
		if got := heard(t, connection, err); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}

// A connection that can't be made is closed, as if it were refused.
func TestRelay(t *testing.T) {
	folder := t.TempDir()
	host, err := Host(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	settings, server := Settings{Folder: folder}, greeting(t, "machine")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	target := make(chan string, 1)
	go tunnel.Accept(listener, func(c net.Conn) { settings.relay(c, <-target, false) })
	target <- server
	connection, err := net.Dial("tcp", listener.Addr().String())
	if got := heard(t, connection, err); got != "machine" {
		t.Errorf("the relay leads to %q", got)
	}
	target <- "localhost:0"
	if connection, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		return // it was reset before the client knew of it
	}
	defer connection.Close()
	if n, err := connection.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v, of a server that is not there", n, err)
	}
}

func TestPacketFilterRules(t *testing.T) {
	folder := t.TempDir()
	program, rules := filepath.Join(folder, "nft"), filepath.Join(folder, "rules")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat >'"+rules+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Settings{Nft: program}).redirectLoopback(17001); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(rules); err != nil || !strings.Contains(string(got), "ip daddr 127.0.0.0/8 meta l4proto tcp meta mark != 1 redirect to :17001") {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no such table >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (Settings{Nft: program}).redirectLoopback(17001); err == nil || !strings.Contains(err.Error(), "set packet filter rules: exit status 1: no such table") {
		t.Errorf("rules that are refused: %v", err)
	}
}

// The plugin changes nothing for a device or a namespace that are not a pod's.
func TestPluginRefuses(t *testing.T) {
	for config, test := range map[string]struct{ namespace, device, want string }{
		`{"shared":[17445]}`: {"/proc/self/ns/net", "../lo", `invalid network device "../lo"`},
		`{"shared":[17446]}`: {"/nonexistent", "eth0", "open network namespace /nonexistent"},
	} {
		environment := map[string]string{"CNI_COMMAND": "ADD", "CNI_NETNS": test.namespace, "CNI_IFNAME": test.device}
		var out strings.Builder
		err := RunPlugin(func(name string) string { return environment[name] }, strings.NewReader(config), &out)
		if err == nil || !strings.Contains(err.Error(), test.want) || out.String() != "" {
			t.Errorf("%s: %q, %v, want %s", config, out.String(), err, test.want)
		}
	}
}

// A client that dials the relay itself gets no connection: it would be relayed without end.
func TestRelayOfItself(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go tunnel.Accept(listener, Settings{Folder: t.TempDir()}.relayLoopback)
	connection, err := net.Dial("tcp", listener.Addr().String())
	if got := heard(t, connection, err); got != "" {
		t.Errorf("the relay leads to %q", got)
	}
}
