package command

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/devcluster/internal/dns"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/kubeproxy"
	"github.com/credence-id/credence/devcluster/internal/network"
	"github.com/credence-id/credence/devcluster/internal/node"
	"github.com/credence-id/credence/devcluster/internal/scheduler"
)

// children are the processes of a node that are this binary.
func children() []*cobra.Command {
	return []*cobra.Command{
		component(scheduler.Subcommand, scheduler.Run),
		component(kubelet.Subcommand, kubelet.Run),
		component(kubeproxy.Subcommand, kubeproxy.Run),
		component(dns.Subcommand, dns.Run),
		component(network.Subcommand, func([]string) error { return network.RunPlugin(os.Getenv, os.Stdin, os.Stdout) }),
		{
			Use:    node.Subcommand + " FOLDER",
			Hidden: true,
			Args:   cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
				defer stop()
				return node.Child(ctx, args[0])
			},
		},
	}
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
