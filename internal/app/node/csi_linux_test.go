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
	"time"

	"github.com/credence-id/credence/internal/app/node"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/test/testkit"
)

// config is that of a driver in a folder of its own, whose kubeconfig has these fields of a cluster.
func config(t *testing.T, cluster string) node.CSI {
	t.Helper()
	// Paths of sockets are short.
	kubelet := testkit.Need(os.MkdirTemp("", "csi"))(t)
	t.Cleanup(func() {
		testkit.Expect(t, os.RemoveAll(kubelet))
	})
	kubeconfig := filepath.Join(kubelet, "kubeconfig")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{` + cluster + `}}]}`
	testkit.Must(t, os.WriteFile(kubeconfig, []byte(content), 0o600))
	return node.CSI{Kubeconfig: kubeconfig, Node: "node-1", KubeletDir: kubelet, Log: slog.New(slog.DiscardHandler)}
}

// Tokens of pods are sent to no program but the API.
func TestAddressOfTheAPI(t *testing.T) {
	for name, test := range map[string]struct{ cluster, want string }{
		"http":          {`"server":"http://127.0.0.1:1"`, "the address of the API is http://127.0.0.1:1"},
		"no scheme":     {`"server":"127.0.0.1:1"`, "the address of the API is http://127.0.0.1:1"},
		"not verified":  {`"server":"https://127.0.0.1:1","insecure-skip-tls-verify":true`, "insecure-skip-tls-verify is set for https://127.0.0.1:1"},
		"with password": {`"server":"http://admin:password@127.0.0.1:1"`, "the address of the API is http://admin:xxxxx@127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			config := config(t, test.cluster)
			err := node.RunCSI(ctx, config)
			var usage *serving.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), "--kubeconfig "+config.Kubeconfig+": "+test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Of drivers that start at once beside the socket of one that was killed, one serves; the next one starts once it has ended.
func TestOneDriver(t *testing.T) {
	config := config(t, `"server":"https://127.0.0.1:1"`)
	const drivers = 8
	for range 20 {
		left := testkit.Need(net.Listen("unix", leaveSocket(t, config.KubeletDir)))(t)
		left.(*net.UnixListener).SetUnlinkOnClose(false)
		testkit.Must(t, left.Close())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, drivers)
		for range drivers {
			go func() { ended <- node.RunCSI(ctx, config) }()
		}
		for range drivers - 1 {
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), "another driver of this node runs") {
					t.Errorf("a second driver: %v", err)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("several drivers serve")
			}
		}
		stop()
		testkit.Expect(t, <-ended, "the driver that serves")
	}
}

// A driver that is stopped before it serves has not failed, whatever socket another one has left.
func TestStoppedBeforeItServes(t *testing.T) {
	config := config(t, `"server":"https://127.0.0.1:1"`)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	testkit.Expect(t, node.RunCSI(ctx, config), "without a socket")
	left := testkit.Need(net.Listen("unix", leaveSocket(t, config.KubeletDir)))(t)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	testkit.Must(t, left.Close())
	testkit.Expect(t, node.RunCSI(ctx, config), "with a socket that is left")
}

// leaveSocket makes the folder of the driver's socket, and returns the socket's path, where nothing is left.
func leaveSocket(t *testing.T, kubelet string) string {
	t.Helper()
	path := filepath.Join(kubelet, "plugins_registry", "credence.sock")
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return path
}
