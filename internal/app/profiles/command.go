package profiles

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/internal/profiles/drift"
)

// NewCommand returns the command `profiles`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "profiles",
		Short: "Look after the profiles of service accounts",
		Long: `Report in the status of each ServiceAccountProfile of the workload cluster what became of it: whether it can be
applied, and why not; and the username of the account, by which other clusters and systems know it. No two accounts
have one username, and a profile keeps the one that it was given first for as long as it exists.
Report which running pods of the account no longer match its profile, and evict these, or restart
their workloads, where the profile wants it.
Make namespaces what the NamespaceTemplates that select them have.

It holds no keys and can read no Secret. Of several replicas the leader alone works.`,
		Example:      `  credence-server profiles --cluster-name prod.example.com`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the workload cluster (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.IdentityKubeconfig, "identity-kubeconfig", "", "kubeconfig file of the cluster that the workload identities are in, if it is not the workload cluster")
	flags.StringVar(&config.LeaseNamespace, "leader-election-namespace", defaultLeaseNamespace, "namespace of the Lease by which replicas elect the one that works")
	flags.StringVar(&config.UsernameTemplate, "username-template", username.DefaultTemplate, "how the name of a service account outside of the cluster is made, where its profile sets none: {name} and {namespace} once each, and {cluster}; one that could give two accounts one name is refused")
	flags.StringVar(&config.ClusterName, "cluster-name", "", "name of the cluster in usernames, the value of {cluster}, such as prod.example.com (default: the uid of the namespace kube-system)")
	flags.DurationVar(&config.Drift.Interval, "drift-interval", drift.DefaultPeriods.Interval, "time between two looks at the running pods of accounts with profiles")
	flags.DurationVar(&config.Drift.Pace, "drift-pace", drift.DefaultPeriods.Pace, "how long a change is left alone before pods are evicted or workloads restarted for it, and the time between two evictions of a profile; new pods that are not ready for five times as long stop the others")
	config.Health.AddFlags(flags)
	return command
}
