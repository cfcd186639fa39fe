package command

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/scheduler"
)

// children are the processes of a node that are this binary.
func children() []*cobra.Command {
	return []*cobra.Command{component(scheduler.Subcommand, scheduler.Run), component(kubelet.Subcommand, kubelet.Run)}
}

// component is a child's side of child.Run.
func component(subcommand string, run func([]string) error) *cobra.Command {
	return &cobra.Command{
		Use:                subcommand,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return run(args) },
	}
}
