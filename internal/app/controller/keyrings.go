package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// keyRings is the API of the one KeyRing.
type keyRings struct{ client rest.Interface }

func newKeyRings(config *rest.Config) (keyRings, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return keyRings{}, fmt.Errorf("register %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return keyRings{}, fmt.Errorf("make client of %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	return keyRings{client}, nil
}

func (k keyRings) get(ctx context.Context) (*v1alpha1.KeyRing, error) {
	var ring v1alpha1.KeyRing
	err := k.client.Get().Resource("keyrings").Name(v1alpha1.WorkloadIdentities).Do(ctx).Into(&ring)
	return &ring, err
}

func (k keyRings) updateStatus(ctx context.Context, ring *v1alpha1.KeyRing) error {
	ring.APIVersion, ring.Kind = v1alpha1.SchemeGroupVersion.String(), "KeyRing"
	return k.client.Put().Resource("keyrings").Name(ring.Name).SubResource("status").Body(ring).Do(ctx).Error()
}
