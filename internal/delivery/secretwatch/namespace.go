package secretwatch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// namespace is one whose Secrets are followed.
type namespace struct {
	store    toolscache.Indexer
	informer toolscache.Controller
	stop     context.CancelFunc
	ended    chan struct{}
	// settled is closed by the first list, or by the first refusal: one namespace must not hold up the others.
	settled chan struct{}
	settle  func()
}

// follow begins to follow a namespace, until it is unfollowed or ctx is done.
func (c *Cache) follow(ctx context.Context, name string) {
	ctx, stop := context.WithCancel(ctx)
	followed := c.newNamespace(name)
	followed.stop = stop
	c.mu.Lock()
	c.namespaces[name] = followed
	c.mu.Unlock()
	c.watches.Go(func() {
		defer close(followed.ended)
		followed.informer.RunWithContext(ctx)
	})
	c.watches.Go(func() {
		select {
		case <-followed.informer.HasSyncedChecker().Done():
		case <-ctx.Done():
			return
		}
		followed.settle()
		if c.config.Served != nil {
			c.config.Served(name)
		}
	})
}

// unfollow ends that: the handlers get a deletion of each of the namespace's Secrets.
func (c *Cache) unfollow(name string) {
	c.mu.Lock()
	followed, ok := c.namespaces[name]
	delete(c.namespaces, name)
	c.mu.Unlock()
	if !ok {
		return
	}
	followed.stop()
	<-followed.ended
	for _, object := range followed.store.List() {
		c.callHandlers(func(handler toolscache.ResourceEventHandler) { handler.OnDelete(object) })
	}
	followed.settle()
}

func (c *Cache) newNamespace(name string) *namespace {
	followed := &namespace{ended: make(chan struct{}), settled: make(chan struct{})}
	followed.settle = sync.OnceFunc(func() { close(followed.settled) })
	secrets := c.client.CoreV1().Secrets(name)
	// A namespace whose Secrets can't be read counts as empty.
	settleOn := func(err error) {
		if err != nil {
			followed.settle()
		}
	}
	store, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: c.source(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.LabelSelector, options.FieldSelector = c.config.Selector, c.config.Fields
				list, err := secrets.List(ctx, options)
				settleOn(err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.LabelSelector, options.FieldSelector = c.config.Selector, c.config.Fields
				stream, err := secrets.Watch(ctx, options)
				settleOn(err)
				return stream, err
			},
		}),
		ObjectType: &corev1.Secret{},
		Handler: toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, initial bool) {
				c.callHandlers(func(handler toolscache.ResourceEventHandler) { handler.OnAdd(object, initial) })
			},
			UpdateFunc: func(before, after any) {
				c.callHandlers(func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(before, after) })
			},
			DeleteFunc: func(object any) {
				c.callHandlers(func(handler toolscache.ResourceEventHandler) { handler.OnDelete(object) })
			},
		},
		Indexers:  c.indexers,
		Transform: cache.TransformStripManagedFields(),
	})
	followed.store, followed.informer = store.(toolscache.Indexer), informer
	return followed
}

// listBindings and watchBindings see the RoleBindings of one name: no right to others is needed.
func (c *Cache) listBindings(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = c.ofOurName()
	return c.client.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, options)
}

func (c *Cache) watchBindings(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = c.ofOurName()
	return c.client.RbacV1().RoleBindings(metav1.NamespaceAll).Watch(ctx, options)
}

func (c *Cache) ofOurName() string {
	return fields.OneTermEqualSelector("metadata.name", c.config.Binding).String()
}
