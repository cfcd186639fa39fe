package certificates

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/certificates"
)

// NewCommand returns the command `certificates`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "certificates",
		Short: "Make and renew the serving certificates of an installation in a cluster",
		Long: `Keep a certificate authority in the Secret credence-ca, a serving certificate of it for each component in the Secrets
credence-…-tls (tls.crt, tls.key, ca.crt), and what is trusted in caBundle of the APIServices and webhook configurations of
Credence. Each is renewed two thirds into its life, and made again at once if it is lost or damaged. A new authority is
trusted before it signs, and the one before until none of its certificates is served.

Of several replicas one works, and all look. The rights and the policy that it needs are deploy/options/certificates.yaml.
Where cert-manager makes the certificates, do not run it.`,
		Example:      `  credence-server certificates --bind-address :: --health-port 8443`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.Namespace, "namespace", defaultNamespace, "namespace of the Secrets, of the Services and of the Lease credence-certificates")
	flags.StringSliceVar(&config.Components, "components", certificates.Components(), "components that get a certificate, by the names of their Services")
	flags.StringVar(&config.ClusterDomain, "cluster-domain", defaultClusterDomain, "domain of the cluster's DNS")
	flags.StringArrayVar(&config.Hosts, "host", nil, "COMPONENT=NAME, a further DNS name or IP address in the certificate of a component; may be given several times")
	flags.BoolVar(&config.RegisterAPI, "register-api", false, "make the APIServices of Credence once its API server answers; they are deleted with the ClusterRole credence:apiserver, and at the end if the namespace is being deleted")
	flags.DurationVar(&config.Lifetime, "certificate-lifetime", defaultLifetime, "lifetime of serving certificates; each is renewed when a third of it is left")
	flags.DurationVar(&config.AuthorityLifetime, "authority-lifetime", defaultAuthorityLifetime, "lifetime of the authority, at least three times that of certificates; it is replaced when a third of it is left")
	flags.DurationVar(&config.Overlap, "overlap", defaultOverlap, "how long a new authority is trusted before it replaces certificates, and the one before after the last was replaced; at most a sixth of the lifetime of certificates")
	flags.StringVar(&config.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	flags.IntVar(&config.HealthPort, "health-port", 0, "port of /livez, /readyz and /metrics, with a certificate that is made here; 0: none")
	serving.AddAnonymousMetrics(flags, &config.AnonymousMetrics)
	return command
}
