package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func TestTunnel(t *testing.T) {
	// The server speaks first, and answers once its client has finished.
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	go Accept(far, func(c net.Conn) {
		_, _ = io.WriteString(c, "hello ")
		_, _ = io.Copy(c, c)
	})
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go Serve(listener, func(ctx context.Context, address string) (net.Conn, error) {
		if address != "there:1" {
			return nil, errors.New("no way\nto " + address)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", far.Addr().String())
	})
	conn, err := Dial(t.Context(), socket, "there:1")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "you"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); string(got) != "hello you" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := Dial(t.Context(), socket, "elsewhere:1"); err == nil || !strings.Contains(err.Error(), "connect to elsewhere:1") || !strings.Contains(err.Error(), "no way") {
		t.Errorf("elsewhere: %v", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := listener.Accept(); err == nil {
			cancel()
		}
	}()
	if _, err := Dial(ctx, socket, "there:1"); err == nil {
		t.Error("a server that never answers has connected")
	}
}
