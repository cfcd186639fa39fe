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

Of several replicas one works, and all look. The rights and the policies that it needs are deploy/options/registration.yaml
and deploy/options/certificates.yaml.

Where another program makes the certificates, --ca-file has its authorities: then only the API is registered (--register-api),
for which deploy/options/registration.yaml is enough.`,
		Example: `  credence-server certificates --register-api --bind-address :: --health-port 8443
  credence-server certificates --register-api --ca-file ca.crt --health-port 8443 --tls-cert-file tls.crt --tls-private-key-file tls.key`,
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
	flags.StringVar(&config.CAFile, "ca-file", "", "certificates are of another source, and this file has its authorities, which caBundle of the APIServices follows; no certificate is made, and the health port shows that of --tls-cert-file")
	flags.DurationVar(&config.Lifetime, "certificate-lifetime", defaultLifetime, "lifetime of serving certificates; each is renewed when a third of it is left")
	flags.DurationVar(&config.AuthorityLifetime, "authority-lifetime", defaultAuthorityLifetime, "lifetime of the authority, at least three times that of certificates; it is replaced when a third of it is left")
	flags.DurationVar(&config.Overlap, "overlap", defaultOverlap, "how long a new authority is trusted before it replaces certificates, and the one before after the last was replaced; at most a sixth of the lifetime of certificates")
	config.AddFlags(flags)
	return command
}
