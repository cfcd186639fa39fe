// Package cluster is "credence cluster": other clusters whose agents get tokens of the identities of this one. In go the name of a cluster
// and namespaces; out come its object, users and rights in the identity cluster, and their credentials for the workload cluster.
package cluster

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// New is "cluster".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster COMMAND",
		Short: "Let other clusters have tokens of this cluster's identities",
		Long: `Let other clusters have tokens of the identities of this one, the identity cluster.
KUBECONFIG and --kubeconfig are of the identity cluster.`,
	}
	cmd.AddCommand(newJoin(terminal, kube), newList(terminal, kube), newCheck(terminal, kube), newLeave(terminal, kube))
	return command.Group(cmd)
}
