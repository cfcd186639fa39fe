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

// requestTimeout bounds a single read.
const requestTimeout = 10 * time.Second

// firstList bounds how long a caller waits for the first list of a namespace before the identity is read by itself.
const firstList = 5 * time.Second

// idle is for how long an unused namespace is followed, if changes are not reported either.
const idle = time.Hour

// Follower reads identities, and follows the namespaces of the read ones.
type Follower struct {
	client   client
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
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return &Follower{client: client, onChange: onChange, clock: clock.RealClock{}, namespaces: map[string]*namespace{}}, nil
}

// Run follows until ctx is done. Before it, identities are read one by one.
func (f *Follower) Run(ctx context.Context) error {
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

// Get returns an identity, which must not be changed. Its errors are those of the API, NotFound and Forbidden among them; an
// identity that the watch has not shown is read live before NotFound is returned.
func (f *Follower) Get(ctx context.Context, ns, name string) (*v1alpha1.WorkloadIdentity, error) {
	if followed := f.follow(ns); followed != nil {
		patience, cancel := context.WithTimeout(ctx, firstList)
		defer cancel()
		select {
		case <-followed.settled:
		case <-patience.Done():
		}
		if object, found, _ := followed.informer.GetStore().GetByKey(ns + "/" + name); found {
			return object.(*v1alpha1.WorkloadIdentity), nil
		}
	}
	return f.Read(ctx, ns, name)
}

// Read reads an identity live, also if it is followed.
func (f *Follower) Read(ctx context.Context, ns, name string) (*v1alpha1.WorkloadIdentity, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return f.client.get(ctx, ns, name)
}

// Retain stops following the namespaces that are not kept. keep must not call the Follower.
func (f *Follower) Retain(keep func(namespace string) bool) {
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
func (f *Follower) follow(name string) *namespace {
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

func (f *Follower) newNamespace(name string) *namespace {
	lister := f.client.in(name)
	followed := &namespace{
		informer: cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: lister.list, WatchFuncWithContext: lister.watch},
			&v1alpha1.WorkloadIdentity{}, 0, cache.Indexers{}),
		settled: make(chan struct{}),
	}
	followed.settle = sync.OnceFunc(func() { close(followed.settled) })
	// Neither error is possible before the informer runs.
	_ = followed.informer.SetTransform(func(object any) (any, error) {
		if wi, ok := object.(*v1alpha1.WorkloadIdentity); ok {
			wi.ManagedFields = nil
		}
		return object, nil
	})
	// A refusal is seen by each reader of an identity: it is then read by itself, and the error is the reader's.
	_ = followed.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { followed.settle() })
	_, _ = followed.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		// Those of the first list too: a reader may have got NotFound meanwhile.
		AddFunc: func(object any, _ bool) { f.report(object) },
		UpdateFunc: func(before, object any) {
			if !onlyReported(before, object) {
				f.report(object)
			}
		},
		DeleteFunc: f.report,
	})
	return followed
}

// onlyReported reports whether nothing has changed of an identity but what is reported of its delivery, and labels.
func onlyReported(before, after any) bool {
	a, b := before.(*v1alpha1.WorkloadIdentity), after.(*v1alpha1.WorkloadIdentity)
	return a.UID == b.UID && a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
}

func (f *Follower) report(object any) {
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
