package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client talks to one cluster as its admin.
type Client struct {
	objects dynamic.Interface
	plain   rest.Interface
}

// requestTimeout bounds one request; the aggregated API server may be called before it answers.
const requestTimeout = 10 * time.Second

// New returns a Client for the current context of a kubeconfig file.
func New(kubeconfig string) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	config.UserAgent = fieldManager
	config.Timeout = requestTimeout
	// The server's own fairness is the limit; client-go's default of five requests a second would cost seconds.
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client from %s: %w", kubeconfig, err)
	}
	plain, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return nil, fmt.Errorf("make a client from %s: %w", kubeconfig, err)
	}
	return &Client{objects: objects, plain: plain}, nil
}

// unversioned is config for paths that belong to no API group, such as /apis.
func unversioned(config *rest.Config) *rest.Config {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	return config
}
