package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/minors"
)

// Client talks to one cluster as its admin.
type Client struct {
	// Reasons, unless it is nil, returns what is called with each failure of a request that is repeated.
	Reasons func(what string) func(error)

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

// Minor returns that of the cluster's Kubernetes 1.
func (c *Client) Minor(ctx context.Context) (minor int, err error) {
	var answer []byte
	err = c.repeat(ctx, temporary, func() error {
		answer, err = c.plain.Get().AbsPath("/version").Do(ctx).Raw()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the version of the cluster: %w", err)
	}
	return minors.Of(answer)
}

// unversioned is config for paths that belong to no API group, such as /apis.
func unversioned(config *rest.Config) *rest.Config {
	config = dynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{}
	return config
}
