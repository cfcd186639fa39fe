package secretwatch

import (
	"errors"
	"slices"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
)

// informer is the Secrets of all namespaces, with handlers for changes.
type informer struct{ cache *Cache }

// registration is one handler.
type registration struct {
	informer
	handler toolscache.ResourceEventHandler
}

// callHandlers calls all handlers.
func (c *Cache) callHandlers(call func(toolscache.ResourceEventHandler)) {
	c.notify.Lock()
	defer c.notify.Unlock()
	c.mu.Lock()
	handlers := slices.Clone(c.handlers)
	c.mu.Unlock()
	for _, registered := range handlers {
		call(registered.handler)
	}
}

// AddEventHandler implements cache.Informer.
func (i informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	registered := &registration{i, handler}
	i.cache.notify.Lock()
	defer i.cache.notify.Unlock()
	i.cache.mu.Lock()
	i.cache.handlers = append(i.cache.handlers, registered)
	i.cache.mu.Unlock()
	for _, followed := range i.cache.followed() {
		for _, object := range followed.store.List() {
			handler.OnAdd(object, true)
		}
	}
	return registered, nil
}

// AddEventHandlerWithResyncPeriod implements cache.Informer. Events are not repeated without a change.
func (i informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler implements cache.Informer.
func (i informer) RemoveEventHandler(registered toolscache.ResourceEventHandlerRegistration) error {
	i.cache.mu.Lock()
	defer i.cache.mu.Unlock()
	i.cache.handlers = slices.DeleteFunc(i.cache.handlers, func(r *registration) bool { return registered == r })
	return nil
}

// AddIndexers implements cache.Informer.
func (informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("indexes of Secrets are made by IndexField, before the cache starts")
}

// HasSynced implements cache.Informer.
func (i informer) HasSynced() bool { return toolscache.IsDone(i) }

// HasSyncedChecker implements cache.Informer.
func (i informer) HasSyncedChecker() toolscache.DoneChecker { return i }

// IsStopped implements cache.Informer.
func (informer) IsStopped() bool { return false }

// Name implements toolscache.DoneChecker.
func (informer) Name() string { return "Secrets" }

// Done implements toolscache.DoneChecker.
func (i informer) Done() <-chan struct{} { return i.cache.synced }
