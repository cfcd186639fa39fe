package webhook

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/tracing"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// NewCommand returns the command `webhook`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	var finish func()
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Give pods their identities and accounts, and Secrets what their target systems need",
		Long: `Answer the admission reviews of a cluster:

  /pods             gives pods the identities of their service account, or refuses them with the reason
  /default-pods     does it in namespaces without the label for how tokens come to pods
  /secrets          puts the keys that a target system needs into Secrets that carry tokens
  /templates        warns of workloads whose pods will be refused
  /serviceaccounts  warns how many pods have an identity that is taken off their account
  /profile-pods, /profile-templates
                    do what the profile of the service account wants, in namespaces without identities
  /finished/pods, /finished/default-pods, /finished/profile-pods
                    refuse pods that lack some of it after all mutating webhooks
  /quotas           refuses context objects that would exceed a Quota of their CredentialsBinding
  /mutate           fills in the contents of the GMSACredentialSpecs that Windows pods name
  /validate         refuses pods whose service account may not use them, or whose contents are not theirs
  /credentialspecs  refuses GMSACredentialSpecs that can never work, and warns of those that rarely do
  /gmsa-templates   warns of workloads whose pods will be refused for one

Without --client-ca-file these paths are secret: /SECRET/pods and so on. The webhook writes them
into its webhook configurations, and answers at no others. Nothing else is written to any cluster.
A review that can't be decided is answered with code 500, which is never a refusal.`,
		Example:      `  credence-server webhook --tls-cert-file /tls/tls.crt --tls-private-key-file /tls/tls.key --bind-address ::`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			finish()
			serving.CollectRarely()
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster whose pods and Secrets are reviewed (default: the cluster that this pod runs in)")
	flags.StringVar(&config.IdentityKubeconfig, "identity-kubeconfig", "", "kubeconfig file of the cluster that has the identities (default: the same cluster)")
	serving.AddDelivery(flags, &config.Delivery)
	flags.StringVar(&config.BindAddress, "bind-address", defaultBindAddress, "IP address to listen on")
	flags.IntVar(&config.Port, "port", defaultPort, "port to answer reviews on; 0 takes a free one")
	flags.IntVar(&config.HealthPort, "health-port", 0, "port of /livez, /readyz and /metrics, with the same certificate; 0: none")
	serving.AddAnonymousMetrics(flags, &config.AnonymousMetrics)
	flags.StringVar(&config.TLSCertFile, "tls-cert-file", "", "file of the certificate to serve with (required)")
	flags.StringVar(&config.TLSPrivateKeyFile, "tls-private-key-file", "", "file of its private key (required)")
	flags.StringVar(&config.ClientCAFile, "client-ca-file", "", "PEM file of the certificate authorities of the API server's client certificate: connections without one are refused (default: no certificate is requested, and reviews are answered at secret paths alone, which the webhook writes into its configurations)")
	flags.StringVar(&config.ClientName, "client-name", "", "common name of the API server's client certificate: others of --client-ca-file are refused (default: any)")
	flags.DurationVar(&config.ReviewPathPeriod, "review-path-period", defaultPathPeriod, "after what time the secret paths of reviews are replaced, without --client-ca-file")
	flags.StringVar(&config.AgentUser, "agent-user", rights.Agent().Name, "user that alone may write Secrets with a service account as context")
	tracing.AddFlag(flags, &config.TracingConfig)
	finish = config.GMSA.addFlags(flags)
	return command
}
