//go:build unix

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

func TestUpWithANode(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	output := l.mustCall(l.upArguments("--detach", "--node")...)
	for _, text := range []string{"node: starting kube-scheduler, containerd, kubelet, kube-proxy, coredns, credence-node", "node: ready", "127.0.0.1, for pods"} {
		if !strings.Contains(output, text) {
			t.Errorf("up --node does not show %q:\n%s", text, output)
		}
	}
	for _, event := range []string{"check-node " + l.dir.Path("devcluster"), fmt.Sprintf("node shares %d", l.port+2)} {
		if !slices.Contains(l.recordedEvents(), event) {
			t.Errorf("events are %q, want also %q", l.recordedEvents(), event)
		}
	}
	if node := l.endpoints().Node; node != "127.0.0.1" {
		t.Errorf("endpoints.json has the node %q", node)
	}
	status := l.waitHealthy()
	for _, name := range append([]string{"node"}, nodeParts...) {
		if !strings.Contains(status, "\n"+name+" ") {
			t.Errorf("status does not have %s:\n%s", name, status)
		}
	}
	l.mustCall("down", "--dir", string(l.dir))
	if node := l.endpoints().Node; node != "" {
		t.Errorf("endpoints.json has the node %q after down", node)
	}

	// The next start without it has none.
	l.mustCall("up", "--dir", string(l.dir), "--detach")
	if status := l.waitHealthy(); strings.Contains(status, "kubelet") {
		t.Errorf("status has a kubelet without a node:\n%s", status)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

func TestUpWithImageRegistries(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	registries := filepath.Join(t.TempDir(), "registries.yaml")
	l.mustFail([]string{"--image-registries: ", "no such file"}, l.upArguments("--detach", "--node", "--image-registries", registries)...)
	write := func(text string) {
		t.Helper()
		testkit.Must(t, os.WriteFile(registries, []byte(text), 0o600))
	}
	write("registries: [{images: registry.example.com, exchange: token-server}]")
	l.mustFail([]string{"--image-registries: " + registries, "audiences"}, l.upArguments("--detach", "--node", "--image-registries", registries)...)
	write("registries: [{images: registry.example.com, audiences: [a], exchange: token-server}]")
	l.mustFail([]string{"--image-registries is for pods of a node: add --node"}, l.upArguments("--detach", "--image-registries", registries)...)
	if _, err := os.Stat(string(l.dir)); err == nil {
		t.Error("a start that was refused has made its directory")
	}
	l.mustCall(l.upArguments("--detach", "--node", "--image-registries", registries)...)
	if want := "node pulls by " + filepath.Join(l.bin, "credence-image-credentials") + " from " + registries; !slices.Contains(l.recordedEvents(), want) {
		t.Errorf("events are %q, want also %q", l.recordedEvents(), want)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

func TestUpWithAGuard(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	file := filepath.Join(t.TempDir(), "file.yaml")
	for message, arguments := range map[string][]string{
		"are for static pods of a node: add --node":      {"--guard", "restricted"},
		"would tighten: add --guard":                     {"--node", "--guard-allow", file},
		"--guard-allow: ":                                {"--node", "--guard", "restricted", "--guard-allow", file},
		"file.yaml: no such file or directory; or give ": {"--node", "--guard", file},
	} {
		l.mustFail([]string{message}, l.upArguments(append([]string{"--detach"}, arguments...)...)...)
	}
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	l.mustCall(l.upArguments("--detach", "--node", "--guard", "baseline", "--guard-allow", file)...)
	if want := "node is guarded by " + filepath.Join(l.bin, "credence-node") + " with baseline and " + file; !slices.Contains(l.recordedEvents(), want) {
		t.Errorf("events are %q, want also %q", l.recordedEvents(), want)
	}
	if status := l.waitHealthy(); !strings.Contains(status, "\n"+guardPart+" ") {
		t.Errorf("status does not have the guard:\n%s", status)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

func TestDownClearsTheNodeOfAKilledUp(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.mustCall(l.upArguments("--detach", "--node")...)
	pid, _, err := l.dir.Holder()
	testkit.Must(t, err)
	testkit.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	l.eventually("the supervisor has ended", func() error {
		if _, held, _ := l.dir.Holder(); held {
			return fmt.Errorf("%d still runs", pid)
		}
		return nil
	})
	l.mustCall("down", "--dir", string(l.dir))
	if want := "clean-node " + l.dir.Path("devcluster"); !slices.Contains(l.recordedEvents(), want) {
		t.Errorf("events are %q, want also %q", l.recordedEvents(), want)
	}
}

func TestNoNodeHere(t *testing.T) {
	t.Parallel()
	l := newLaptop(t, misbehaviour+"DEVCLUSTER=nodeless")
	for _, more := range [][]string{{"--node"}, {"--node", "--detach"}} {
		l.mustFail([]string{"--node: ", "a node needs runc, not found in PATH: run apt-get install runc"}, l.upArguments(more...)...)
		if _, err := os.Stat(string(l.dir)); err == nil {
			t.Error("a start that was refused has made its directory")
		}
	}
}

// The error has the last state that was seen, not that the limit has ended the last look.
func TestPollKeepsTheLastState(t *testing.T) {
	asked := 0
	err := poll(t.Context(), time.Second, func(ctx context.Context) error {
		if asked++; asked == 1 {
			return errors.New("the node is not ready")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "not done after 1s: the node is not ready") {
		t.Error(err)
	}
}
