package agent

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/membership"
)

// NewCommand returns the command `agent`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "agent",
		Short: "Deliver tokens of workload identities into Secrets",
		Long: `Keep the Secrets of a workload cluster that are labelled for it filled with fresh tokens, make such Secrets for
service accounts that give their pods identities, and let pods be scheduled once their tokens exist.

The identities may be of another cluster: --identity-kubeconfig is how that is reached, as the agent's own user
there, whose rights decide which tokens this cluster can get. Without it, the identities are of the workload
cluster itself. Tokens for pods name their service account then, and where the cluster has joined the other one
(credence cluster join): the agent then renews the tokens in the folder of that kubeconfig, too. In a pod, which
has that folder mounted from the Secret credence-identities of the namespace credence-system, it renews them
there with --renew-in-secret.

With --pods-port it also serves tokens for volumes of credence-node, which are not stored, to the pods of the
workload cluster: the identity cluster can't verify their service-account tokens, so the agent does.

Tokens are renewed at a point of their lifetime that is drawn anew each time, so that many are not renewed at
once. While the identity cluster does not answer, tokens stay; when it is back, all that are due are renewed
within two minutes. Of several replicas the leader alone works.`,
		Example: `  # identities of the same cluster
  credence-server agent

  # identities of another cluster
  credence-server agent --identity-kubeconfig /etc/credence/garden.kubeconfig`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the workload cluster (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.IdentityKubeconfig, "identity-kubeconfig", "", "kubeconfig file of the identity cluster (default: the workload cluster is that too)")
	flags.BoolVar(&config.RenewInSecret, "renew-in-secret", false, "renew the tokens of --identity-kubeconfig in the Secret "+membership.SecretName+" of the namespace "+rights.SystemNamespace+" of the workload cluster, which they are mounted from")
	serving.AddDelivery(flags, &config.Delivery)
	flags.StringSliceVar(&config.Namespaces, "namespaces", nil, "namespaces of the workload cluster that tokens are delivered in, so that the agent needs rights in no others (default: all)")
	flags.Float64Var(&config.Window.From, "renew-from", defaultRenewFrom, "part of a token's lifetime from which it may be renewed")
	flags.Float64Var(&config.Window.To, "renew-to", defaultRenewTo, "part of a token's lifetime by which it is renewed")
	flags.DurationVar(&config.Duration, "token-duration", 0, "lifetime to request for tokens, at least 10m (default: that of the API server)")
	flags.IntVar(&config.Concurrency, "concurrency", defaultConcurrency, "how many Secrets are renewed at once")
	flags.StringVar(&config.LeaseNamespace, "leader-election-namespace", defaultLeaseNamespace, "namespace of the Lease by which replicas elect the one that works")
	flags.IntVar(&config.PodsPort, "pods-port", 0, "port at which credence-node gets tokens for pods of the workload cluster, with the serving certificate; needs --identity-kubeconfig; 0: none")
	config.Health.AddFlags(flags)
	return command
}
