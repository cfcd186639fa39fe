package imagecredentials

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1 "k8s.io/kubelet/config/v1"
	protocol "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/registry"
)

// program is the name of the file that the kubelet runs, in its --image-credential-provider-bin-dir.
const program = "credence-image-credentials"

func newKubeletConfig(f *flags) *cobra.Command {
	var audience string
	command := &cobra.Command{
		Use:   "kubelet-config",
		Short: "Print the kubelet's configuration of this program, for the registries",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if audience == "" {
				return serving.Usage(errors.New("--audience is required: kubectl get --raw /.well-known/openid-configuration shows it as issuer, unless kube-apiserver has --api-audiences"))
			}
			config, err := f.read()
			if err != nil {
				return err
			}
			if _, err := f.cluster(); err != nil {
				return err
			}
			arguments, err := f.absolute()
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(kubeletConfig(config, audience, arguments))
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(text)
			return err
		},
	}
	command.Flags().StringVar(&audience, "audience", "", "audience of tokens that the API of the identities accepts (required)")
	return command
}

// kubeletConfig is what the kubelet has to know: which images, and the token and the annotation that the program needs. A password is kept for the
// service account, whose identity it is of, and for the program's cacheDuration. One that has the name of a pod is kept for that pod: where a registry
// takes such passwords, all are, as a program has one kind of cache.
func kubeletConfig(config registry.Config, audience string, arguments []string) kubeletv1.CredentialProviderConfig {
	provider := kubeletv1.CredentialProvider{
		Name:                 program,
		DefaultCacheDuration: &metav1.Duration{Duration: 0 * time.Second},
		APIVersion:           protocol.SchemeGroupVersion.String(),
		Args:                 arguments,
		TokenAttributes: &kubeletv1.ServiceAccountTokenAttributes{
			ServiceAccountTokenAudience:          audience,
			CacheType:                            kubeletv1.ServiceAccountServiceAccountTokenCacheType,
			RequireServiceAccount:                ptr.To(true),
			RequiredServiceAccountAnnotationKeys: []string{v1alpha1.AnnotationImagePullIdentity},
		},
	}
	for _, r := range config.Registries {
		provider.MatchImages = append(provider.MatchImages, r.Images)
		if r.OfPods() {
			provider.TokenAttributes.CacheType = kubeletv1.TokenServiceAccountTokenCacheType
		}
	}
	return kubeletv1.CredentialProviderConfig{
		TypeMeta:  metav1.TypeMeta{APIVersion: kubeletv1.SchemeGroupVersion.String(), Kind: "CredentialProviderConfig"},
		Providers: []kubeletv1.CredentialProvider{provider},
	}
}
