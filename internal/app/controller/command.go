package controller

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/settings"
)

// NewCommand returns the command `controller`; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	command := &cobra.Command{
		Use:   "controller",
		Short: "Rotate the signing keys of an issuer",
		Long: `Rotate the keys of one issuer, and tell of them in the KeyRing workload-identities.

There is always a spare key that is published and has never signed. When the rotation period is over, the
spare signs, if every relying party can know it by then; the former key stays published until the last token
that it signed has expired. Of several replicas the leader alone rotates. The requests of
credence keys rotate and revoke are carried out by the API server, whether or not this program runs.`,
		Example: `  credence-server controller --issuer https://identity.example.com --keys-secret credence-system/credence-keys \
    --documents-configmap credence-system/credence-discovery`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         serving.RunE(&config, &config.Log, Run),
	}
	flags := command.Flags()
	flags.StringVar(&config.Issuer, "issuer", "", "URL of the issuer whose keys these are (required)")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the API that has the KeyRing (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.KeysSecret, "keys-secret", "", "`NAMESPACE/NAME` of the Secret with the ring of keys")
	flags.StringVar(&config.KeysDir, "keys-dir", "", "folder with the ring of keys")
	flags.DurationVar(&config.KeysInterval, "keys-refresh-interval", keyring.DefaultInterval, "how often the ring is looked at, besides whenever it is known to have changed")
	flags.StringVar(&config.DocumentsConfigMap, "documents-configmap", "", "`NAMESPACE/NAME` of the ConfigMap that the documents are published in: no key signs before they show it")
	flags.StringVar(&config.DocumentsDir, "documents-dir", "", "folder that the documents are published in, instead of a ConfigMap")
	flags.StringVar(&config.PublishCheckURL, "publish-check-url", "", "URL below which relying parties find the documents, as a rule the issuer's: no key signs before it has been shown there for the publish period (default: the published documents are looked at where they are written)")
	flags.StringVar(&config.PublishCheckCAFile, "publish-check-ca-file", "", "PEM file of the certificate authorities to trust for --publish-check-url (default: those of this machine)")
	flags.StringVar(&config.LeaseNamespace, "leader-election-namespace", defaultLeaseNamespace, "namespace of the Lease by which replicas elect the one that rotates")
	config.Health.AddFlags(flags)
	settings.AddFlags(flags, &config.Settings)
	return command
}
