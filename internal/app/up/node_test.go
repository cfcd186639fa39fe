//go:build unix

package up

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestUpWithANode(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	output := l.mustCall(l.upArguments("--detach", "--node")...)
	for _, text := range []string{"node: starting kube-scheduler, containerd, kubelet, kube-proxy, coredns", "node: ready", "127.0.0.1, for pods"} {
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
	status := l.mustCall("status", "--dir", string(l.dir))
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
	if status := l.mustCall("status", "--dir", string(l.dir)); strings.Contains(status, "kubelet") {
		t.Errorf("status has a kubelet without a node:\n%s", status)
	}
	l.mustCall("down", "--dir", string(l.dir))
}

func TestDownClearsTheNodeOfAKilledUp(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.mustCall(l.upArguments("--detach", "--node")...)
	pid, _, err := l.dir.Holder()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
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
