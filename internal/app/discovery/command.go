package discovery

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/discovery"
)

// NewCommand returns the command credence-discovery; it runs until its context is done, and logs to its standard error.
func NewCommand() *cobra.Command {
	config := Config{}
	level := slog.LevelInfo
	command := &cobra.Command{
		Use:   "credence-discovery",
		Short: "Serve the public OpenID Connect documents of an issuer",
		Long: `Serve the openid-configuration and the key set (JWKS) of one issuer, over TLS, at the paths of its URL.

The documents come from a folder or from a ConfigMap. They are checked, and what relying parties
would refuse is not served: the last good documents stay. Documents and certificate are reloaded
on change. The server has no signing key, and needs no Kubernetes API to start.`,
		Example: `  credence-discovery --issuer https://identity.example.com --documents-dir /etc/credence/documents \
    --tls-cert-file tls.crt --tls-private-key-file tls.key`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if config.MaxAge == 0 { // in a Config it stands for the default
				return serving.Usage(errors.New("--max-age 0s must be whole seconds, at least 1s"))
			}
			serving.CollectRarely()
			config.Log = slog.New(slog.NewTextHandler(command.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Issuer, "issuer", "", "URL of the issuer whose documents are served: https, without query, fragment, userinfo or trailing slash (required)")
	flags.StringVar(&config.DocumentsDir, "documents-dir", "", "folder with the files openid-configuration.json and jwks.json")
	flags.StringVar(&config.DocumentsConfigMap, "documents-configmap", "", "`NAMESPACE/NAME` of a ConfigMap with the keys openid-configuration.json and jwks.json")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig file of the API that has the ConfigMap (default: the API of the cluster that this pod runs in)")
	flags.StringVar(&config.DocumentsCache, "documents-cache", "", "folder that keeps the last good documents of the ConfigMap, for a start while the API is away (default: none)")
	flags.StringVar(&config.BindAddress, "bind-address", defaultBindAddress, "IP address to listen on")
	flags.IntVar(&config.Port, "port", defaultPort, "port to serve the documents on; 0 takes a free one")
	flags.StringVar(&config.TLSCertFile, "tls-cert-file", "", "PEM file with the serving certificate and its intermediates (required)")
	flags.StringVar(&config.TLSPrivateKeyFile, "tls-private-key-file", "", "PEM file with the private key of the serving certificate; only its owner may have access (required)")
	flags.DurationVar(&config.MaxAge, "max-age", discovery.DefaultMaxAge, fmt.Sprintf("how long relying parties may keep the documents without fetching them again, at most %s", maxMaxAge))
	flags.IntVar(&config.HealthPort, "health-port", 0, "port of /livez, /readyz and /metrics, with the same certificate; 0 turns them off")
	serving.AddAnonymousMetrics(flags, &config.AnonymousMetrics)
	flags.TextVar(&level, "log-level", level, "least severe `LEVEL` of log messages to write: debug, info, warn or error")
	return command
}
