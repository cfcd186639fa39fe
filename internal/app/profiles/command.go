package profiles

import (
	"log/slog"

	"github.com/spf13/cobra"
)

// NewCommand returns the command `profiles`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "profiles",
		Short: "Look after the profiles of service accounts",
		Long: `Report in the status of each ServiceAccountProfile of the workload cluster what became of it: whether it can be
applied, and why not. Make namespaces what the NamespaceTemplates that select them have.

It holds no keys and can read no Secret. Of several replicas the leader alone works.`,
		Example:      `  credence-server profiles`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the workload cluster (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.LeaseNamespace, "leader-election-namespace", defaultLeaseNamespace, "namespace of the Lease by which replicas elect the one that works")
	config.Health.AddFlags(flags)
	return command
}
