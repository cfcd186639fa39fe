package binder

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
)

// NewCommand returns the command `binder`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "binder",
		Short: "Let the agent have the Secrets of the namespaces that tokens are delivered in",
		Long: `Create the RoleBinding credence:agent:secrets in each namespace of the workload cluster that has the label
identity.credence.dev/workload-identities=enabled, except credence-system and kube-*: the agent can read Secrets
in these namespaces, and in no others.

It is a program of its own so that the agent, which holds tokens, and the webhook, which answers requests, have no
right to bind roles. Several replicas may run; none needs to be elected.`,
		Example:      `  credence-server binder`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the workload cluster (default: the API of the cluster that this pod runs in)")
	config.Health.AddFlags(flags)
	return command
}
