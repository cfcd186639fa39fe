package serving

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/version"
)

// Cluster returns how a component reaches a cluster's API: by the kubeconfig, or without one by the pod's own service account. The
// flag is the one that gives the kubeconfig; an error names it.
func Cluster(flag, kubeconfig, component string) (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("read how to reach the Kubernetes API: %w; set %s", err, flag)
	}
	config.UserAgent = "credence-server/" + version.Read().Version + " " + component
	return config, nil
}
