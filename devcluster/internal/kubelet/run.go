//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"os"

	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/kubelet"

	"github.com/credence-id/credence/devcluster/internal/child"
)

// Subcommand is the argument that makes this binary the child; the folder of links to containers' logs follows it, then
// Args.
const Subcommand = "kubelet"

// Run is the child. It returns after SIGTERM; the process ends when the parent does.
func Run(args []string) error {
	child.DieWithParent()
	if len(args) == 0 {
		return fmt.Errorf("%s is started by credence-devcluster only", Subcommand)
	}
	// No flag is there for it; the machine's own folder is another kubelet's.
	kubelet.ContainerLogsDir = args[0]
	// Its services may tell init of themselves; this is none.
	if err := os.Unsetenv("NOTIFY_SOCKET"); err != nil {
		return err
	}
	command := app.NewKubeletCommand(context.Background())
	command.SilenceErrors = true
	command.SetArgs(args[1:])
	return command.Execute()
}
