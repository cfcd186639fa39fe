package workloadidentities

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// Revocations follows which keys of the identity cluster's issuer were revoked. Where the KeyRing can't be read, none is known.
type Revocations struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	onChange   func()
	revoked    atomic.Pointer[map[string]struct{}]
}

// NewRevocations returns the Revocations of the cluster of config. onChange is told when another key is revoked.
func NewRevocations(config *rest.Config, onChange func()) (*Revocations, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	config.Timeout = 0
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	return &Revocations{client: client, parameters: runtime.NewParameterCodec(scheme), onChange: onChange}, nil
}

// Revoked says whether a key is known to be revoked.
func (r *Revocations) Revoked(keyID string) bool {
	revoked := r.revoked.Load()
	if revoked == nil {
		return false
	}
	_, found := (*revoked)[keyID]
	return found
}

// Run follows the KeyRing until ctx is done.
func (r *Revocations) Run(ctx context.Context) error {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}, &v1alpha1.KeyRing{}, 0, cache.Indexers{})
	// Whoever may not read it, or has none, goes without: a key that is revoked is not in the documents any more either.
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.take,
		UpdateFunc: func(_, object any) { r.take(object) },
	})
	if err != nil {
		return fmt.Errorf("follow the KeyRing: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// take reads the revoked keys of a KeyRing. They are never forgotten.
func (r *Revocations) take(object any) {
	ring, ok := object.(*v1alpha1.KeyRing)
	if !ok || ring.Name != v1alpha1.WorkloadIdentities {
		return
	}
	revoked := map[string]struct{}{}
	for _, key := range ring.Status.Revoked {
		revoked[key.ID] = struct{}{}
	}
	if before := r.revoked.Swap(&revoked); before == nil && len(revoked) > 0 || before != nil && len(*before) != len(revoked) {
		r.onChange()
	}
}

func (r *Revocations) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var list v1alpha1.KeyRingList
	err := r.get(options).Do(ctx).Into(&list)
	return &list, err
}

func (r *Revocations) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.get(options).Watch(ctx)
}

// get asks for the one ring by its name, so that a right to that one is enough.
func (r *Revocations) get(options metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", v1alpha1.WorkloadIdentities).String()
	return r.client.Get().Resource("keyrings").VersionedParams(&options, r.parameters)
}
