package workloadidentities

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// requestTimeout bounds a single request.
const requestTimeout = 10 * time.Second

// firstList bounds how long a caller waits for the first list of a namespace before the identity is read by itself.
const firstList = 5 * time.Second

// idle is for how long an unused namespace is followed, if changes are not reported either.
const idle = time.Hour

// Follower reads identities, and Bindings CredentialsBindings.
type (
	Follower = follower[*v1alpha1.WorkloadIdentity]
	Bindings = follower[*v1alpha1.CredentialsBinding]
)

// follower reads objects of a kind, and follows the namespaces of the read ones.
type follower[T object] struct {
	client   client
	kind     kind[T]
	onChange func(types.NamespacedName) // may be nil
	clock    clock.WithTicker

	mu         sync.Mutex
	run        context.Context // nil until Run
	namespaces map[string]*namespace
}

// namespace is one that is followed.
type namespace struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	used     time.Time // the last read
	// settled is closed by the first list, or by the first refusal.
	settled chan struct{}
	settle  func()
}

// New returns a Follower of the cluster of config. onChange, if not nil, is called with every identity that appears, changes or
// goes; it must not block. Without it, unused namespaces are dropped.
func New(config *rest.Config, onChange func(types.NamespacedName)) (*Follower, error) {
	return newFollower(config, identityKind(), onChange)
}

// NewBindings is New for CredentialsBindings.
func NewBindings(config *rest.Config, onChange func(types.NamespacedName)) (*Bindings, error) {
	return newFollower(config, bindingKind(), onChange)
}

func newFollower[T object](config *rest.Config, kind kind[T], onChange func(types.NamespacedName)) (*follower[T], error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &follower[T]{client: client, kind: kind, onChange: onChange, clock: clock.RealClock{}, namespaces: map[string]*namespace{}}, nil
}

// Run follows until ctx is done. Before it, identities are read one by one.
func (f *follower[T]) Run(ctx context.Context) error {
	f.mu.Lock()
	f.run = ctx
	f.mu.Unlock()
	defer f.Retain(func(string) bool { return false })
	if f.onChange != nil {
		<-ctx.Done()
		return nil
	}
	ticker := f.clock.NewTicker(idle / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			now := f.clock.Now()
			f.Retain(func(name string) bool { return now.Sub(f.namespaces[name].used) < idle })
		}
	}
}

// Get returns an object, which must not be changed. Its errors are those of the API, NotFound and Forbidden among them; one
// that the watch has not shown is read live before NotFound is returned.
func (f *follower[T]) Get(ctx context.Context, ns, name string) (T, error) {
	if followed := f.follow(ns); followed != nil {
		patience, cancel := context.WithTimeout(ctx, firstList)
		defer cancel()
		select {
		case <-followed.settled:
		case <-patience.Done():
		}
		if object, found, _ := followed.informer.GetStore().GetByKey(ns + "/" + name); found {
			return object.(T), nil
		}
	}
	return f.Read(ctx, ns, name)
}

// Read reads an object live, also if it is followed.
func (f *follower[T]) Read(ctx context.Context, ns, name string) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return f.kind.get(ctx, f.client, ns, name)
}

// Each shows the objects of all followed namespaces to visit, which must not change them, or call the follower.
func (f *follower[T]) Each(visit func(T)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, followed := range f.namespaces {
		for _, object := range followed.informer.GetStore().List() {
			visit(object.(T))
		}
	}
}

// Retain stops following the namespaces that are not kept. keep must not call the Follower.
func (f *follower[T]) Retain(keep func(namespace string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, followed := range f.namespaces {
		if !keep(name) {
			followed.stop()
			delete(f.namespaces, name)
		}
	}
}

// follow returns the namespace, and begins to follow it if it is new; nil before Run and after it.
func (f *follower[T]) follow(name string) *namespace {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.run == nil || f.run.Err() != nil {
		return nil
	}
	if followed, ok := f.namespaces[name]; ok {
		followed.used = f.clock.Now()
		return followed
	}
	followed := f.newNamespace(name)
	followed.used = f.clock.Now()
	ctx, cancel := context.WithCancel(f.run)
	followed.stop = cancel
	f.namespaces[name] = followed
	go followed.informer.RunWithContext(ctx)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), followed.informer.HasSynced) {
			followed.settle()
		}
	}()
	return followed
}

func (f *follower[T]) newNamespace(name string) *namespace {
	lister := f.kind.in(f.client, name)
	followed := &namespace{
		informer: cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: lister.list, WatchFuncWithContext: lister.watch},
			f.kind.object(), 0, cache.Indexers{}),
		settled: make(chan struct{}),
	}
	followed.settle = sync.OnceFunc(func() { close(followed.settled) })
	// Neither error is possible before the informer runs.
	_ = followed.informer.SetTransform(func(object any) (any, error) {
		if followed, ok := object.(T); ok {
			followed.SetManagedFields(nil)
		}
		return object, nil
	})
	// A refusal is seen by each reader of an identity: it is then read by itself, and the error is the reader's.
	_ = followed.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { followed.settle() })
	_, _ = followed.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		// Those of the first list too: a reader may have got NotFound meanwhile.
		AddFunc: func(object any, _ bool) { f.report(object) },
		UpdateFunc: func(before, object any) {
			if !f.kind.same(before.(T), object.(T)) {
				f.report(object)
			}
		},
		DeleteFunc: f.report,
	})
	return followed
}

func (f *follower[T]) report(object any) {
	if f.onChange == nil {
		return
	}
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if wi, ok := object.(metav1.Object); ok {
		f.onChange(types.NamespacedName{Namespace: wi.GetNamespace(), Name: wi.GetName()})
	}
}
