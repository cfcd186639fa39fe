package serving

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/version"
)

// Cluster returns how a component reaches a cluster's API: by the kubeconfig, or without one by the pod's own service account. The
// flag is the one that gives the kubeconfig; an error names it. A file that can't be read is no error of usage: it may be there later.
func Cluster(flag, kubeconfig, component string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, Usage(fmt.Errorf("%s is missing and this is not a pod of a cluster (%w): give the kubeconfig of its API", flag, err))
	case err != nil:
		return nil, fmt.Errorf("read how to reach the Kubernetes API: %s %s: %w", flag, kubeconfig, err)
	}
	config.UserAgent = "credence-server/" + version.Read().Version + " " + component
	return config, nil
}
