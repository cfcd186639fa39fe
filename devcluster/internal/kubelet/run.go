//go:build linux

package kubelet

import (
	"context"
	"os"

	"k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary the child; Args follow.
const Subcommand = "kubelet"

// Run is the child. It returns after SIGTERM; the process ends when the parent does.
func Run(args []string) error {
	child.DieWithParent()
	// A service may notify init: the kubelet is not one here.
	if err := os.Unsetenv("NOTIFY_SOCKET"); err != nil {
		return err
	}
	command := app.NewKubeletCommand(context.Background())
	command.SilenceErrors = true
	command.SetArgs(args)
	return command.Execute()
}
