package apiserver

import (
	"fmt"
	"log/slog"

	"github.com/credence-id/credence/internal/apiserver"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/term"
)

// NewCommand returns the command apiserver.
func NewCommand() (*cobra.Command, error) {
	scheme, err := apiserver.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	codecs := apiserver.NewCodecs(scheme)
	o := NewOptions(codecs)
	command := &cobra.Command{
		Use:   "apiserver",
		Short: "Serve WorkloadIdentity and issue tokens",
		Long: `Serve the API group authentication.gardener.cloud as an aggregated API server: WorkloadIdentity objects, and their
tokens (workloadidentities/token). This is the token issuer: it holds the signing keys and publishes the discovery
documents that credence-discovery serves.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			serving.CollectRarely()
			log := slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
			return Run(command.Context(), o, scheme, codecs, log)
		},
	}
	sets := o.Flags()
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sets, columns)
	return command, nil
}
