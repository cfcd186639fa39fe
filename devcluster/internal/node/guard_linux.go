package node

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"

	processes "github.com/credence-id/credence/devcluster/internal/child"
	"github.com/credence-id/credence/devcluster/internal/containerd"
)

// guardName is the guard among the processes of a node: its program may run as the driver, too.
const guardName = "guard"

// runtimeSocket is what the kubelet has for the container runtime.
func (n *node) runtimeSocket() string {
	if n.Guard == "" {
		return n.runtime.Socket()
	}
	return filepath.Join(n.Folder, "guard.sock")
}

// keepGuard runs the guard of the runtime, if there is one, until stop is called. It returns once the runtime answers through it.
func (n *node) keepGuard(ctx, starting context.Context, fail context.CancelCauseFunc) (stop func(), err error) {
	if n.Guard == "" {
		return func() {}, nil
	}
	arguments := []string{"guard", "--listen", n.runtimeSocket(), "--runtime", n.runtime.Socket(), "--node-name", Name, "--kubelet-dir", n.kubelet.Root(), "--template", n.GuardTemplate, "--kubeconfig", n.kubelet.Kubeconfig}
	if n.GuardAllow != "" {
		arguments = append(arguments, "--allow", n.GuardAllow)
	}
	stop = n.keep(ctx, fail, guardName, func(ctx context.Context, output io.Writer, started func(int)) error {
		return processes.RunProgram(ctx, exec.CommandContext(ctx, n.Guard, arguments...), output, started)
	})
	if err := containerd.Await(starting, n.runtimeSocket()); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
