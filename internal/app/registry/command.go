package registry

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
)

// NewCommand returns the command of the program; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "credence-registry",
		Short: "Keep passwords of registries fresh in Secrets that images are pulled with",
		Long: `For clusters whose kubelets cannot run credence-image-credentials. A Secret of type
kubernetes.io/dockerconfigjson that the agent keeps filled with tokens of an identity, and whose annotation
identity.credence.dev/registries lists registries of the configuration, gets their passwords in .dockerconfigjson:
new ones with each token, and before they expire. The user on whose behalf the Secret is filled must be allowed to
use the identity each time.

It works in namespaces with a RoleBinding of the name and the ClusterRole credence:registry:secrets for its service
account, has no right to tokens, and never sends one to a host that the configuration does not name. Of several
replicas the leader alone works.`,
		Example:      `  credence-registry --registries /etc/credence/registries.yaml`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Registries, "registries", "/etc/credence/registries.yaml", "file of the registries whose passwords are kept; a changed one counts from the next passwords on")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster of the Secrets (default: the API of the cluster that this pod runs in)")
	flags.Float64Var(&config.Window.From, "renew-from", 0.6, "part of a password's lifetime from which it may be renewed")
	flags.Float64Var(&config.Window.To, "renew-to", 0.8, "part of a password's lifetime by which it is renewed")
	flags.StringVar(&config.LeaseNamespace, "leader-election-namespace", "credence-system", "namespace of the Lease by which replicas elect the one that works")
	config.Health.AddFlags(flags)
	return command
}
