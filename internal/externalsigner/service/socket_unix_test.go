//go:build unix

package service_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/externalsigner/service"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

func TestListenMakesFolderAndSocket(t *testing.T) {
	path := filepath.Join(filepath.Dir(externalsignertest.Socket(t)), "run", "s")
	for range 2 {
		listener := testkit.Need(service.Listen(t.Context(), path))(t)
		for name, want := range map[string]os.FileMode{filepath.Dir(path): os.ModeDir | 0o700, path: os.ModeSocket | 0o600, path + ".lock": 0o600} {
			if info, err := os.Stat(name); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
		testkit.Must(t, listener.Close())
		if _, err := os.Stat(path); err == nil {
			t.Error("the socket stays")
		}
	}
}

func TestListenReplacesTheSocketOfTheDead(t *testing.T) {
	path := externalsignertest.Socket(t)
	dead := testkit.Need(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	dead.SetUnlinkOnClose(false)
	testkit.Must(t, dead.Close())
	listener := testkit.Need(service.Listen(t.Context(), path))(t)
	_ = listener.Close()
}

func TestListenRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string) (instead string)
		want    string
	}{
		{"one of ours that lives", func(t *testing.T, path string) string {
			listener := testkit.Need(service.Listen(t.Context(), path))(t)
			t.Cleanup(func() { _ = listener.Close() })
			return path
		}, "another process listens"},
		{"another program that lives", func(t *testing.T, path string) string {
			listener := testkit.Need(net.Listen("unix", path))(t)
			t.Cleanup(func() { _ = listener.Close() })
			return path
		}, "another process listens"},
		{"a file", func(t *testing.T, path string) string {
			testkit.Must(t, os.WriteFile(path, nil, 0o600))
			return path
		}, "not a socket"},
		{"a folder that others may enter", func(t *testing.T, path string) string {
			testkit.Must(t, os.Chmod(filepath.Dir(path), 0o750))
			return path
		}, "chmod 700"},
		{"a folder that is a link", func(t *testing.T, path string) string {
			link := filepath.Dir(path) + "-link"
			testkit.Must(t, os.Symlink(filepath.Dir(path), link))
			t.Cleanup(func() { _ = os.Remove(link) })
			return filepath.Join(link, "s")
		}, "not a folder"},
		{"a folder of a folder that is not there", func(_ *testing.T, path string) string { return filepath.Join(path, "a", "b") }, "no such file"},
		{"a relative path", func(*testing.T, string) string { return "s" }, "absolute"},
		{"a long path", func(*testing.T, string) string { return "/" + strings.Repeat("a", 103) }, "at most 103 bytes"},
		{"a folder of another user", func(t *testing.T, path string) string {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a folder to another user")
			}
			testkit.Must(t, os.Chown(filepath.Dir(path), 12345, -1))
			return path
		}, "does not belong"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := test.prepare(t, externalsignertest.Socket(t))
			listener, err := service.Listen(t.Context(), path)
			if err == nil {
				_ = listener.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q lacks %q or the path", err, test.want)
			}
		})
	}
}

// A request in flight at the end is answered.
func TestServeEndsGracefully(t *testing.T) {
	path := externalsignertest.Socket(t)
	listener := testkit.Need(service.Listen(t.Context(), path))(t)
	reading, read := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c *service.Config) {
		ring := c.Ring
		c.Ring = func() (keys.Ring, time.Time, bool) {
			close(reading)
			<-read
			return ring()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx, listener) }()
	client := testkit.Need(externalsigner.New(externalsigner.Config{Socket: path, Timeout: patience}))(t)
	t.Cleanup(func() { _ = client.Close() })
	answered := make(chan error, 1)
	go func() {
		_, err := client.Keys(t.Context())
		answered <- err
	}()
	<-reading
	cancel()
	// It listens no more, and answers yet.
	for {
		if connection, err := net.Dial("unix", path); err != nil {
			break
		} else {
			_ = connection.Close()
		}
	}
	close(read)
	testkit.Expect(t, <-answered, "the request in flight")
	testkit.Expect(t, <-served)
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket stays")
	}
	// Its lock is free again.
	again := testkit.Need(service.Listen(t.Context(), path))(t)
	_ = again.Close()
}
