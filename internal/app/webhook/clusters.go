package webhook

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/tracing"
)

// requestTimeout bounds each question to an API: as long as the API server waits for a webhook by default.
const requestTimeout = 10 * time.Second

// clusters are the two that the webhook calls, which may be one.
type clusters struct {
	workload kubernetes.Interface
	objects  dynamic.Interface // of the same cluster, of kinds whose unknown fields must be kept
	identity *rest.Config
	specs    *rest.Config // of the cluster whose pods are admitted
}

func connect(c Config, traces *tracing.Provider) (clusters, error) {
	workload, err := clientConfig("--kubeconfig", c.Kubeconfig, traces)
	if err != nil {
		return clusters{}, err
	}
	identity := rest.CopyConfig(workload)
	if c.IdentityKubeconfig != "" {
		if identity, err = clientConfig("--identity-kubeconfig", c.IdentityKubeconfig, traces); err != nil {
			return clusters{}, err
		}
	}
	specs := rest.CopyConfig(workload)
	// Kubernetes' own kinds are smaller and cheaper to read as protobuf.
	workload.ContentType = runtime.ContentTypeProtobuf
	workload.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(workload)
	if err != nil {
		return clusters{}, fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	objects, err := dynamic.NewForConfig(specs)
	if err != nil {
		return clusters{}, fmt.Errorf("make client of the Kubernetes API: %w", err)
	}
	return clusters{client, objects, identity, specs}, nil
}

func clientConfig(flag, kubeconfig string, traces *tracing.Provider) (*rest.Config, error) {
	config, err := serving.Cluster(flag, kubeconfig, "webhook")
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	// Questions come at the rate of pods, which the API server limits; a limit here would only make pods wait.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	traces.Trace(config)
	return config, nil
}
