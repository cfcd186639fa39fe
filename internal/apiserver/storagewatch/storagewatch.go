// Package storagewatch lets an informer follow a resource of the server's own storage. In goes a storage; out comes a source that lists and
// watches it. It reviews no rights.
package storagewatch

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"
)

// Storage has the objects of a resource.
type Storage interface {
	List(context.Context, *internalversion.ListOptions) (runtime.Object, error)
	Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error)
}

// Source lists and watches the objects of all namespaces.
func Source(storage Storage) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return storage.List(request.WithNamespace(ctx, ""), &internalversion.ListOptions{ResourceVersion: options.ResourceVersion, ResourceVersionMatch: options.ResourceVersionMatch, Limit: options.Limit, Continue: options.Continue})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := storage.Watch(request.WithNamespace(ctx, ""), &internalversion.ListOptions{ResourceVersion: options.ResourceVersion, AllowWatchBookmarks: options.AllowWatchBookmarks})
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, unwrap), nil
		},
	}, listsFirst{})
}

// unwrap returns the object inside the wrapper by which the watch cache shares encodings.
func unwrap(event watch.Event) (watch.Event, bool) {
	if cached, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = cached.GetObject()
	}
	return event, true
}

// listsFirst has an informer list before it watches.
type listsFirst struct{}

// IsWatchListSemanticsUnSupported is what client-go looks for.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }
