package credentialspecs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/gmsa"
)

// trusted is for how long the last state is used once the watch has broken off and can't be begun anew.
const trusted = 10 * time.Second

// Follower has the GMSACredentialSpecs of one cluster.
type Follower struct {
	client   dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	now      func() time.Time
	log      *slog.Logger
	// state is why nothing could be listed yet; nil where the cluster has no such kind.
	state atomic.Pointer[error]
	// broken is since when there is no watch, in nanoseconds of the epoch; 0 while there is one.
	broken atomic.Int64
}

var errNotListed = errors.New("GMSACredentialSpecs have not been listed yet")

// New returns a Follower of the cluster of config, by a clock. It logs when the watch breaks off, and when there is one again.
func New(config *rest.Config, now func() time.Time, log *slog.Logger) (*Follower, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	single, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", v1.GroupName, err)
	}
	// A watch is one long answer, bounded by the timeout of its request.
	config.Timeout = 0
	endless, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of %s: %w", v1.GroupName, err)
	}
	resource := v1.SchemeGroupVersion.WithResource(v1.ResourceName)
	f := &Follower{client: single.Resource(resource), now: now, log: log}
	f.state.Store(&errNotListed)
	all := endless.Resource(resource)
	f.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := all.Watch(ctx, options)
			if err == nil {
				f.mended()
			}
			return w, err
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	// Neither error is possible before the informer runs.
	_ = f.informer.SetTransform(transform)
	_ = f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		f.brokeOff(err)
		if apierrors.IsNotFound(err) { // a cluster without this kind has none of its objects
			err = nil
		} else {
			err = fmt.Errorf("GMSACredentialSpecs can't be listed: %w", err)
		}
		f.state.Store(&err)
	})
	return f, nil
}

// Run follows until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	f.informer.RunWithContext(ctx)
	return nil
}

// Ready returns nil once all are known, or once it is known that the cluster has no such kind. Before that single ones are
// read from the API, which takes longer.
func (f *Follower) Ready() error {
	if f.informer.HasSynced() {
		return nil
	}
	return *f.state.Load()
}

func (f *Follower) brokeOff(err error) {
	if f.broken.CompareAndSwap(0, f.now().UnixNano()) && !apierrors.IsNotFound(err) {
		f.log.Error("GMSACredentialSpecs can't be watched: they will be read one by one", "error", err)
	}
}

func (f *Follower) mended() {
	if f.broken.Swap(0) != 0 {
		f.log.Info("GMSACredentialSpecs are watched")
	}
}

// Unwatched is for how long there has been no watch; 0 where there is one.
func (f *Follower) Unwatched() time.Duration {
	since := f.broken.Load()
	if since == 0 {
		return 0
	}
	return max(f.now().Sub(time.Unix(0, since)), 1)
}

// Len is how many are known.
func (f *Follower) Len() int { return len(f.informer.GetStore().ListKeys()) }

// Known returns the one of a name as it was last seen: milliseconds ago, while the watch goes on. It returns false for one that
// has not been seen, which may exist all the same, and for all of them once the watch has been broken off for ten seconds.
func (f *Follower) Known(name string) (gmsa.Spec, bool) {
	if f.Unwatched() > trusted {
		return gmsa.Spec{}, false
	}
	object, found, _ := f.informer.GetStore().GetByKey(name)
	if !found {
		return gmsa.Spec{}, false
	}
	return object.(*known).spec, true
}

// Read returns the current one of a name. A missing one is not an error. name must be one that an object can have.
func (f *Follower) Read(ctx context.Context, name string) (gmsa.Spec, error) {
	object, err := f.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return gmsa.Spec{}, nil
	case err != nil:
		return gmsa.Spec{}, fmt.Errorf("read GMSACredentialSpec %s: %w", name, err)
	}
	return gmsa.SpecOf(object.Object["credspec"]), nil
}

// known is what is kept of an object.
type known struct {
	metav1.ObjectMeta
	spec gmsa.Spec
}

func transform(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok { // of one that went without a watch, its key is all there is
		return object, nil
	}
	return &known{ObjectMeta: metav1.ObjectMeta{Name: full.GetName(), ResourceVersion: full.GetResourceVersion()}, spec: gmsa.SpecOf(full.Object["credspec"])}, nil
}
