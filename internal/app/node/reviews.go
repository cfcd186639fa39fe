package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// reviews creates NodeReviews as the user of a kubeconfig. The file is read when the first one is needed, and again until it can be: on a new node the
// kubelet makes its own while the guard runs.
type reviews struct {
	kubeconfig string

	mu     sync.Mutex
	client rest.Interface
}

// Review implements guard.Reviewer, with one request.
func (r *reviews) Review(ctx context.Context, spec identityv1alpha1.NodeReviewSpec) (identityv1alpha1.NodeReviewStatus, error) {
	client, err := r.connect()
	if err != nil {
		return identityv1alpha1.NodeReviewStatus{}, err
	}
	var answer identityv1alpha1.NodeReview
	err = client.Post().Resource("nodereviews").MaxRetries(0).Body(&identityv1alpha1.NodeReview{Spec: spec}).Do(ctx).Into(&answer)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("the API of %s has no nodereviews, as its Credence is older than the guard, or is of another cluster: %w", r.kubeconfig, err)
	}
	return answer.Status, err
}

func (r *reviews) connect() (rest.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: read how to reach the Kubernetes API: %w", err)
	}
	if address, _, err := rest.DefaultServerUrlFor(config); err != nil || address.Scheme != "https" || config.Insecure {
		return nil, errors.Join(err, fmt.Errorf("--kubeconfig %s: the server must have an https URL and be verified: any other program could give verdicts", r.kubeconfig))
	}
	scheme := runtime.NewScheme()
	if err := identityv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion, config.UserAgent, config.QPS = "/apis", &identityv1alpha1.SchemeGroupVersion, "credence-node/guard", -1
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	r.client, err = rest.RESTClientFor(config)
	return r.client, err
}
