package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// servedLimit is how long the API may take to list what it serves.
const servedLimit = time.Minute

// reviews creates NodeReviews as the user of a kubeconfig. The file is read when the first one is needed, and again until it can be: on a new node the
// kubelet makes its own while the guard runs.
type reviews struct {
	kubeconfig string

	mu     sync.Mutex
	client rest.Interface
}

// Review implements guard.Reviewer. It repeats no request.
func (r *reviews) Review(ctx context.Context, spec identityv1alpha1.NodeReviewSpec) (identityv1alpha1.NodeReviewStatus, error) {
	client, err := r.connect()
	if err != nil {
		return identityv1alpha1.NodeReviewStatus{}, err
	}
	var answer identityv1alpha1.NodeReview
	err = client.Post().Resource("nodereviews").MaxRetries(0).Body(&identityv1alpha1.NodeReview{Spec: spec}).Do(ctx).Into(&answer)
	switch {
	case apierrors.IsNotFound(err):
		err = fmt.Errorf("%w: %w", r.unserved(), err)
	case apierrors.IsForbidden(err): // a cluster without them refuses what no role of it grants
		if unserved := r.served(ctx); unserved != nil {
			err = fmt.Errorf("%w: %w", unserved, err)
		}
	}
	return answer.Status, err
}

func (r *reviews) unserved() error {
	return fmt.Errorf("the API of %s has no nodereviews: its Credence is older than the guard, or its identities are in another cluster, where pods of this one can't be reviewed: an admin upgrades Credence, or leaves --kubeconfig out", r.kubeconfig)
}

// served returns an error if the API never gives a verdict. One that does not answer now, or that the kubelet of a new node does not know yet, is not
// known to be such.
func (r *reviews) served(ctx context.Context) error {
	client, err := r.connect()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, servedLimit)
	defer cancel()
	content, err := client.Get().MaxRetries(0).Do(ctx).Raw()
	var list metav1.APIResourceList
	switch {
	case apierrors.IsNotFound(err):
		return r.unserved()
	case err != nil || json.Unmarshal(content, &list) != nil:
		return nil // the error of a review has it
	case !slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool { return resource.Name == "nodereviews" }):
		return r.unserved()
	}
	return nil
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
