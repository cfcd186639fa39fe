package workloadidentities

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
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

// post sends an object to a subresource of an identity, once.
func (c client) post(ctx context.Context, identity types.NamespacedName, subresource string, object runtime.Object) rest.Result {
	return c.postTo(ctx, resource, identity, subresource, object)
}

func (c client) postTo(ctx context.Context, resource string, name types.NamespacedName, subresource string, object runtime.Object) rest.Result {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.rest.Post().MaxRetries(0).Namespace(name.Namespace).Resource(resource).Name(name.Name).SubResource(subresource).Body(object).Do(ctx)
}
