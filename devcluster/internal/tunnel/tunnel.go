package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// dialLimit bounds how long one connection may take to come about.
const dialLimit = 30 * time.Second

// DialFunc connects to host:port by TCP.
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

// Listen makes the socket at path, which only this user can reach, in place of one that a killed process left.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Serve connects clients with the addresses that they name, until the listener is closed.
func Serve(listener net.Listener, dial DialFunc) {
	Accept(listener, func(client net.Conn) { serve(client, dial) })
}

// Accept calls handle for each connection, beside the others, until the listener is closed.
func Accept(listener net.Listener, handle func(net.Conn)) {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// There is no file descriptor left.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go func() {
			defer client.Close()
			handle(client)
		}()
	}
}

func serve(client net.Conn, dial DialFunc) {
	// A client waits for the answer before it sends more, so the reader holds nothing else.
	request, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return
	}
	if request.Method != http.MethodConnect {
		_, _ = io.WriteString(client, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	server, err := dial(ctx, request.Host)
	if err != nil {
		_, _ = fmt.Fprintf(client, "HTTP/1.1 502 %q\r\n\r\n", err.Error())
		return
	}
	defer server.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	Join(client, server)
}

// Join copies between two connections until both directions have ended.
func Join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
}

// Dial connects to address from where the server at socket is.
func Dial(ctx context.Context, socket, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := connect(conn, address); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), conn.Close())
	}
	return conn, nil
}

func connect(conn net.Conn, address string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address); err != nil {
		return err
	}
	// One byte at a time: what follows the answer is the other side's.
	response, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

type oneByte struct{ io.Reader }

func (o oneByte) Read(into []byte) (int, error) { return o.Reader.Read(into[:1]) }
