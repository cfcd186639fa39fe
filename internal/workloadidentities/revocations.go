package workloadidentities

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// Revocations follows which keys of the identity cluster's issuer were revoked. If the KeyRing can't be read, it has none.
type Revocations struct {
	client     client
	onChange   func()
	log        *slog.Logger
	unreadable atomic.Bool
	revoked    atomic.Pointer[map[string]struct{}]
}

// NewRevocations returns the Revocations of the cluster of config. onChange is called when another key is revoked; a KeyRing
// that can't be read is logged.
func NewRevocations(config *rest.Config, onChange func(), log *slog.Logger) (*Revocations, error) {
	client, err := clientOf(config, v1alpha1.SchemeGroupVersion, v1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &Revocations{client: client, onChange: onChange, log: log}, nil
}

// Revoked reports whether a key is known to be revoked.
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
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { r.failed(err) })
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

// failed logs once that the right to read the KeyRing is missing. That the cluster does not answer is logged elsewhere.
func (r *Revocations) failed(err error) {
	if (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) && !r.unreadable.Swap(true) {
		r.log.Warn("the KeyRing can't be read: tokens of keys that are revoked are not renewed before their time; give the agent's user the role credence:agent:keyring in the identity cluster", "error", err)
	}
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

// get requests the one ring by its name, so that a right to that one is enough.
func (r *Revocations) get(options metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", v1alpha1.WorkloadIdentities).String()
	return r.client.rest.Get().Resource("keyrings").VersionedParams(&options, r.client.parameters)
}
