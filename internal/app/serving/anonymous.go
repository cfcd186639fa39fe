package serving

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Anonymous returns how a program reaches an API that it sends tokens of pods to: the address and the authority of the kubeconfig, without
// credentials. The flag is the one that gives the kubeconfig; an error names it.
func Anonymous(flag, kubeconfig, userAgent string) (*rest.Config, error) {
	if kubeconfig == "" {
		return nil, Usage(fmt.Errorf("%s is required: it has the address of the API", flag))
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: read how to reach the Kubernetes API: %w", flag, err)
	}
	config.UserAgent = userAgent
	if err := checkAddress(config); err != nil {
		return nil, Usage(fmt.Errorf("%s %s: %w", flag, kubeconfig, err))
	}
	return rest.AnonymousClientConfig(config), nil
}

// checkAddress refuses an API that could be any program.
func checkAddress(config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil:
		return fmt.Errorf("read the address of the API: %w", err)
	case address.Scheme != "https":
		return fmt.Errorf("the address of the API is %s: tokens of pods are sent there, and need an https URL", address.Redacted())
	case config.Insecure:
		return fmt.Errorf("insecure-skip-tls-verify is set for %s: tokens of pods would be sent to any program that answers there: take it off, and give certificate-authority-data", address.Redacted())
	}
	return nil
}
