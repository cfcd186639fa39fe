package imagecredentials

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/internal/workloadidentities"
)

// flags are where the configuration of the node is.
type flags struct {
	registries, kubeconfig string
}

// timeLimit is shorter than the minute after which the kubelet ends the program, so that the kubelet's log has the reason.
const timeLimit = 50 * time.Second

// NewCommand returns the command that the kubelet runs for a request, on standard input and output.
func NewCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "credence-image-credentials",
		Short: "Pull private images as the identity of a service account",
		Long: `An image credential provider of the kubelet. It reads a CredentialProviderRequest
(credentialprovider.kubelet.k8s.io/v1) from standard input, and prints the response.

The request has a token of the pod's service account, and the annotation of the account that names an identity. With
that token, and so as the pod's service account, the program requests a token of the identity, and has the image's
registry, or what the configuration names for it, take that as a password. It has no right of its own: nothing but the
address of the API is read from the kubeconfig. Images of registries that the configuration does not name are refused.

Why a request was refused is in the log of the kubelet; a pod has an Event that its image could not be pulled.`,
		Example: `  # the configuration of the kubelet, for --image-credential-provider-config
  credence-image-credentials kubelet-config --registries /etc/credence/registries.yaml \
    --kubeconfig /etc/credence/server.kubeconfig --audience https://kubernetes.default.svc.cluster.local`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := f.read()
			if err != nil {
				return err
			}
			cluster, err := f.cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), timeLimit)
			defer cancel()
			provider := provider{registries: config, tokens: workloadidentities.NewSelfTokens(cluster), now: time.Now}
			return provider.answer(ctx, command.InOrStdin(), command.OutOrStdout())
		},
	}
	set := command.PersistentFlags()
	set.StringVar(&f.registries, "registries", "/etc/credence/registries.yaml", "file of the registries whose images are pulled by identity")
	set.StringVar(&f.kubeconfig, "kubeconfig", "/etc/credence/server.kubeconfig", "kubeconfig file with the address of the API of the identities, and its authority; credentials in it are not used")
	command.AddCommand(newKubeletConfig(&f), newInstall())
	return command
}

// cluster is how the API is reached. There are no credentials in it.
func (f flags) cluster() (*rest.Config, error) {
	return serving.Anonymous("--kubeconfig", f.kubeconfig, program)
}

// read reads the registries.
func (f flags) read() (registry.Config, error) {
	config, err := registry.File(f.registries).Read()
	if err != nil {
		return registry.Config{}, serving.Usage(fmt.Errorf("--registries: %w", err))
	}
	return config, nil
}

// absolute are the flags as the kubelet gives them, which runs in another folder.
func (f flags) absolute() ([]string, error) {
	var arguments []string
	for _, flag := range []struct{ name, path string }{{"--registries", f.registries}, {"--kubeconfig", f.kubeconfig}} {
		path, err := filepath.Abs(flag.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag.name, err)
		}
		arguments = append(arguments, flag.name, path)
	}
	return arguments, nil
}
