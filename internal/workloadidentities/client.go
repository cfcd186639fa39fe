package workloadidentities

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const resource = "workloadidentities"

// client is a client of one API group.
type client struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

func newClient(config *rest.Config) (client, error) {
	return clientOf(config, v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme)
}

// clientOf is a client of one API group of the identity cluster.
func clientOf(config *rest.Config, version schema.GroupVersion, register func(*runtime.Scheme) error) (client, error) {
	scheme := runtime.NewScheme()
	if err := register(scheme); err != nil {
		return client{}, fmt.Errorf("register %s: %w", version, err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	// A watch is one long answer, bounded by the timeout of its request.
	config.Timeout = 0
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return client{}, fmt.Errorf("make client of %s: %w", version, err)
	}
	return client{rest: c, parameters: runtime.NewParameterCodec(scheme)}, nil
}

func (c client) get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	var wi v1alpha1.WorkloadIdentity
	if err := c.rest.Get().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Into(&wi); err != nil {
		return nil, err
	}
	return &wi, nil
}

// in lists and watches the identities of one namespace.
func (c client) in(namespace string) namespaced { return namespaced{c, namespace} }

type namespaced struct {
	client
	namespace string
}

// list and watch are the requests of a reflector.
func (n namespaced) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var list v1alpha1.WorkloadIdentityList
	err := n.rest.Get().Namespace(n.namespace).Resource(resource).VersionedParams(&options, n.parameters).Do(ctx).Into(&list)
	return &list, err
}

func (n namespaced) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return n.rest.Get().Namespace(n.namespace).Resource(resource).VersionedParams(&options, n.parameters).Watch(ctx)
}
