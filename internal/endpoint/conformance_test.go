package endpoint_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/test/testkit"
)

// conforms checks what programs need of endpoints, on each system. Nothing listens on those that fresh makes.
func conforms(t *testing.T, fresh func(*testing.T) endpoint.Endpoint) {
	t.Run("it is parsed as it is printed", func(t *testing.T) {
		want := fresh(t)
		if got, err := endpoint.Parse(want.String()); err != nil || got != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	})
	t.Run("both ends have the bytes of the other", func(t *testing.T) {
		e := fresh(t)
		serve(t, e)
		for range 3 {
			exchange(t, e)
		}
	})
	t.Run("a second listener is refused, and the first one serves on", func(t *testing.T) {
		e := fresh(t)
		serve(t, e)
		if listener, err := e.Listen(t.Context()); !errors.Is(err, endpoint.ErrListening) {
			t.Errorf("it listens: %v, %v", listener, err)
		}
		exchange(t, e)
	})
	t.Run("others of this machine are kept out", func(t *testing.T) {
		e := fresh(t)
		serve(t, e)
		restricted(t, e)
	})
	t.Run("to close a listener ends what waits for a connection, and leaves nothing", func(t *testing.T) {
		e := fresh(t)
		for range 2 {
			listener := testkit.Need(e.Listen(t.Context()))(t)
			ended := make(chan error, 1)
			go func() {
				_, err := listener.Accept()
				ended <- err
			}()
			testkit.Expect(t, listener.Close())
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("accepts: %v, want %v", err, net.ErrClosed)
			}
			if connection, err := e.Dial(t.Context()); err == nil {
				t.Errorf("connected to %v, where nothing listens", connection.RemoteAddr())
			}
		}
	})
	t.Run("a context that is done ends a dial", func(t *testing.T) {
		e := fresh(t)
		serve(t, e)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Dial(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	})
}

// serve answers with what it reads until the test ends.
func serve(t *testing.T, e endpoint.Endpoint) {
	t.Helper()
	listener := testkit.Need(e.Listen(t.Context()))(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
	t.Cleanup(func() {
		testkit.Expect(t, listener.Close())
		<-ended
	})
}

// exchange has a server of e answer a megabyte, which is more than a system holds of a connection.
func exchange(t *testing.T, e endpoint.Endpoint) {
	t.Helper()
	connection := testkit.Need(e.Dial(t.Context()))(t)
	defer func() { _ = connection.Close() }()
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i >> 8)
	}
	written := make(chan error, 1)
	go func() {
		_, err := connection.Write(sent)
		written <- err
	}()
	answered := make([]byte, len(sent))
	if _, err := io.ReadFull(connection, answered); err != nil || string(answered) != string(sent) {
		t.Errorf("other bytes come back: %v", err)
	}
	testkit.Expect(t, <-written)
}
