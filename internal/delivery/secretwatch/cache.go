package secretwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config is which Secrets are kept.
type Config struct {
	// Binding is the name of the RoleBinding that a namespace has if its Secrets may be read.
	Binding string
	// Selector selects Secrets by their labels, and Fields by their fields; empty: all.
	Selector, Fields string
	// Served, if not nil, is called with each namespace whose Secrets are kept from now on. It must not block.
	Served func(namespace string)
}

// Cache holds Secrets of the namespaces that have the binding; all else is in the cache that it extends.
type Cache struct {
	cache.Cache
	config Config
	client kubernetes.Interface
	synced chan struct{}
	// notify is held while handlers are called: each sees the changes of a Secret in their order.
	notify sync.Mutex

	mu         sync.Mutex
	indexers   toolscache.Indexers
	namespaces map[string]*namespace
	handlers   []*registration
	watches    sync.WaitGroup
}

var _ cache.Cache = &Cache{}

// New extends the cache of a manager.
func New(config Config, cluster *rest.Config, options cache.Options) (*Cache, error) {
	inner, err := cache.New(cluster, options)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfigAndClient(cluster, options.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("make client for Secrets: %w", err)
	}
	return newCache(config, inner, kube), nil
}

func newCache(config Config, inner cache.Cache, kube kubernetes.Interface) *Cache {
	return &Cache{
		Cache: inner, config: config, client: kube, synced: make(chan struct{}),
		indexers: toolscache.Indexers{}, namespaces: map[string]*namespace{},
	}
}

// Start implements cache.Cache. It returns when all that it has started has ended.
func (c *Cache) Start(ctx context.Context) error {
	defer c.watches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, bindings := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: c.source(&toolscache.ListWatch{ListWithContextFunc: c.listBindings, WatchFuncWithContext: c.watchBindings}),
		ObjectType:    &rbacv1.RoleBinding{},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.follow(ctx, namespaceOf(object)) },
			DeleteFunc: func(object any) { c.unfollow(namespaceOf(object)) },
		},
	})
	c.watches.Go(func() { bindings.RunWithContext(ctx) })
	c.watches.Go(func() {
		select {
		case <-bindings.HasSyncedChecker().Done():
		case <-ctx.Done():
			return
		}
		for _, followed := range c.followed() {
			select {
			case <-followed.settled:
			case <-ctx.Done():
				return
			}
		}
		close(c.synced)
	})
	return c.Cache.Start(ctx)
}

// WaitForCacheSync implements cache.Cache: Secrets have been read in all namespaces where they may be.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	if !c.Cache.WaitForCacheSync(ctx) {
		return false
	}
	select {
	case <-c.synced:
		return true
	case <-ctx.Done():
		return false
	}
}

// Serves reports whether the Secrets of a namespace have been read, and are followed.
func (c *Cache) Serves(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	followed, ok := c.namespaces[name]
	return ok && followed.informer.HasSynced()
}

// GetInformer implements cache.Cache.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := object.(*corev1.Secret); ok {
		return informer{c}, nil
	}
	return c.Cache.GetInformer(ctx, object, options...)
}

// GetInformerForKind implements cache.Cache.
func (c *Cache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	if kind == corev1.SchemeGroupVersion.WithKind("Secret") {
		return informer{c}, nil
	}
	return c.Cache.GetInformerForKind(ctx, kind, options...)
}

// RemoveInformer implements cache.Cache. Secrets stay.
func (c *Cache) RemoveInformer(ctx context.Context, object client.Object) error {
	if _, ok := object.(*corev1.Secret); ok {
		return nil
	}
	return c.Cache.RemoveInformer(ctx, object)
}

// IndexField implements cache.Cache; for Secrets before Start.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	if _, ok := object.(*corev1.Secret); !ok {
		return c.Cache.IndexField(ctx, object, field, extract)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexers[field] = func(object any) ([]string, error) { return extract(object.(*corev1.Secret)), nil }
	return nil
}

// followed returns the namespaces, by name.
func (c *Cache) followed() []*namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*namespace
	for _, name := range slices.Sorted(maps.Keys(c.namespaces)) {
		list = append(list, c.namespaces[name])
	}
	return list
}

// source streams lists where the API can.
func (c *Cache) source(lister *toolscache.ListWatch) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(lister, c.client)
}

func namespaceOf(object any) string {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	return object.(metav1.Object).GetNamespace()
}
