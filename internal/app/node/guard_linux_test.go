package node_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/app/node"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/node/guard"
	"github.com/credence-id/credence/test/testkit"
)

func guardConfig(t *testing.T) node.Guard {
	t.Helper()
	folder, err := os.MkdirTemp("", "guard") // paths of sockets are short
	testkit.Must(t, err)
	t.Cleanup(func() {
		testkit.Expect(t, os.RemoveAll(folder))
	})
	return node.Guard{
		Listen: filepath.Join(folder, "own", "guard.sock"), Runtime: filepath.Join(folder, "containerd.sock"),
		Config: guard.Config{Node: "node-1", KubeletDir: "/var/lib/kubelet", Template: guard.Restricted, Log: slog.New(slog.DiscardHandler)},
	}
}

func TestFlagsOfTheGuard(t *testing.T) {
	for message, change := range map[string]func(*node.Guard){
		"--node-name is required":                                                                       func(g *node.Guard) { g.Node = "" },
		`--kubelet-dir "kubelet" is not an absolute path`:                                               func(g *node.Guard) { g.KubeletDir = "kubelet" },
		`--listen: "guard.sock" is not an absolute path`:                                                func(g *node.Guard) { g.Listen = "guard.sock" },
		`--runtime: tcp://127.0.0.1:1 is not a unix socket`:                                             func(g *node.Guard) { g.Runtime = "tcp://127.0.0.1:1" },
		"--listen: npipe:////./pipe/guard is a named pipe, and only Windows has those":                  func(g *node.Guard) { g.Listen = "npipe:////./pipe/guard" },
		"--runtime: npipe:////./pipe/containerd-containerd is a named pipe, and only Windows has those": func(g *node.Guard) { g.Runtime = "npipe:////./pipe/containerd-containerd" },
		`--kubeconfig "k.conf" is not an absolute path`:                                                 func(g *node.Guard) { g.Kubeconfig = "k.conf" },
		"give the guard an endpoint of its own":                                                         func(g *node.Guard) { g.Runtime = "unix://" + filepath.Dir(g.Listen) + "/./guard.sock" },
	} {
		config := guardConfig(t)
		change(&config)
		err := node.RunGuard(t.Context(), config)
		var usage *serving.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), message) {
			t.Errorf("%v, want %q", err, message)
		}
	}
}

// A guard whose files can't be read serves all the same, on a socket for root alone; it takes the place of one that was killed, and a second one ends.
func TestOneGuard(t *testing.T) {
	config := guardConfig(t)
	config.Template = "/nowhere"
	testkit.Must(t, os.MkdirAll(filepath.Dir(config.Listen), 0o700))
	left := testkit.Need(net.Listen("unix", config.Listen))(t)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	testkit.Must(t, left.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.RunGuard(ctx, config) }()
	testkit.Eventually(t, "the guard listens", func() bool {
		connection, err := net.Dial("unix", config.Listen)
		return err == nil && connection.Close() == nil
	})
	if info, err := os.Stat(config.Listen); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if err := node.RunGuard(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another guard serves "+config.Listen) {
		t.Errorf("a second guard: %v", err)
	}
	stop()
	testkit.Expect(t, <-ended)
}
