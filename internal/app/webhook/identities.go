package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// liveIdentities reads each identity when it is asked for.
type liveIdentities struct{ client rest.Interface }

func newIdentities(config *rest.Config) (liveIdentities, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return liveIdentities{}, fmt.Errorf("register %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return liveIdentities{}, fmt.Errorf("make client of %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	return liveIdentities{client}, nil
}

// Get implements webhook.Identities.
func (l liveIdentities) Get(ctx context.Context, namespace, name string) (*v1alpha1.WorkloadIdentity, error) {
	var wi v1alpha1.WorkloadIdentity
	if err := l.client.Get().Namespace(namespace).Resource("workloadidentities").Name(name).Do(ctx).Into(&wi); err != nil {
		return nil, err
	}
	return &wi, nil
}
