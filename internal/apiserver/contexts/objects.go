package contexts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

// view states what is kept of the objects of a resource: what objects of a kind use, and the keys of candidates by the text of the
// expression.
type view struct {
	kind *contextkind.Kind
	// spec distinguishes the kind from an earlier version of it.
	spec string
	keys map[string]contextkind.CandidateKey
}

// same reports whether two views keep the same.
func (v view) same(other view) bool {
	return v.spec == other.spec && slices.Equal(slices.Sorted(maps.Keys(v.keys)), slices.Sorted(maps.Keys(other.keys)))
}

// object is what is kept of one object.
type object struct {
	metav1.ObjectMeta
	kind string
	uses contextkind.Uses
	keys map[string]string
	// renewal is when new tokens were requested, by an annotation of the object; empty without it.
	renewal string
	// amounts are what an object with bindings uses, for quotas, and amountsFault is why that is not known.
	amounts      contextkind.Amounts
	amountsFault string
}

// byBinding is the index of objects by the bindings that they refer to themselves: no expression is empty.
const byBinding = ""

// objects follows the objects of a resource, which are listed once.
type objects struct {
	resource schema.GroupVersionResource
	view     view
	// number distinguishes it from other readers of a Follower.
	number   uint64
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// failed is why the last list or watch could not be started, and nil after a complete list. While the API does not answer, objects may
	// have changed, so none counts until all are listed again.
	failed atomic.Pointer[error]
	// unwatched is since when there has been no watch; nil while there is one.
	unwatched atomic.Pointer[time.Time]
	clock     clock.PassiveClock
}

// trusted is for how long the last state counts after a watch has ended. The next one mostly begins at once, but a reflector may pause for a
// minute, and a request for a watch may hang for as long.
const trusted = 5 * time.Second

func newObjects(client dynamic.Interface, resource schema.GroupVersionResource, v view, gone *ended, clock clock.PassiveClock) (*objects, error) {
	o := &objects{resource: resource, view: v, clock: clock}
	reader := client.Resource(resource)
	indexers := cache.Indexers{byBinding: func(found any) ([]string, error) {
		var names []string
		for _, binding := range found.(*object).uses.Bindings {
			names = append(names, binding.String())
		}
		return names, nil
	}}
	for text := range v.keys {
		indexers[text] = func(found any) ([]string, error) {
			if key := found.(*object).keys[text]; key != "" {
				return []string{key}, nil
			}
			return nil, nil
		}
	}
	o.informer = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := reader.List(ctx, options)
			if err != nil {
				o.failed.Store(&err) // until a watch has begun: there may be more pages
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := reader.Watch(ctx, options)
			if err != nil {
				o.failed.Store(&err)
				return nil, err
			}
			events = noted{events, o.ended}
			if options.SendInitialEvents == nil || !*options.SendInitialEvents {
				o.watched() // it begins at a list that was read to its end
				return events, nil
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				if mark, ok := event.Object.(metav1.Object); ok && event.Type == watch.Bookmark && mark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
					o.watched()
				}
				return event, true
			}), nil
		},
	}, client), &unstructured.Unstructured{}, 0, indexers)
	_, err := o.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			if before.(*object).UID != after.(*object).UID {
				gone.add(before)
			}
		},
		DeleteFunc: gone.add,
	})
	if err := errors.Join(err, o.informer.SetTransform(o.keep), o.informer.SetWatchErrorHandlerWithContext(o.complain)); err != nil {
		return nil, fmt.Errorf("follow %s: %w", resource.GroupResource(), err)
	}
	return o, nil
}

// complain logs why objects cannot be followed. A resource version that has expired, or a connection that has ended, is no failure: they are listed again.
func (o *objects) complain(ctx context.Context, _ *cache.Reflector, err error) {
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !errors.Is(err, io.EOF) {
		klog.FromContext(ctx).Error(err, "Objects of a ContextKind cannot be followed: it is tried again", "resource", o.resource.GroupResource().String())
	}
}

// noted is a watch whose end is noted: a reflector stops each watch that has ended, and begins no other one before.
type noted struct {
	watch.Interface
	ended func()
}

// Stop implements watch.Interface.
func (n noted) Stop() {
	n.Interface.Stop()
	n.ended()
}

func (o *objects) watched() {
	o.failed.Store(nil)
	o.unwatched.Store(nil)
}

func (o *objects) ended() {
	now := o.clock.Now()
	o.unwatched.CompareAndSwap(nil, &now)
}

// keep is what is kept of an object that was read.
func (o *objects) keep(read any) (any, error) {
	content, ok := read.(*unstructured.Unstructured)
	if !ok {
		return read, nil
	}
	// Expressions are bounded by their cost.
	ctx := context.Background()
	kept := &object{
		ObjectMeta: metav1.ObjectMeta{Namespace: content.GetNamespace(), Name: content.GetName(), UID: content.GetUID(), ResourceVersion: content.GetResourceVersion(), CreationTimestamp: content.GetCreationTimestamp()},
		kind:       content.GetKind(),
	}
	if o.view.kind != nil {
		kept.uses = o.view.kind.Uses(ctx, content.Object, content.GetNamespace())
		kept.renewal = renewal(content)
		if len(kept.uses.Bindings) > 0 {
			var err error
			if kept.amounts, err = o.view.kind.Amounts(ctx, content.Object); err != nil {
				kept.amountsFault = err.Error()
			}
		}
	}
	for text, key := range o.view.keys {
		// A candidate without a key is related to nothing.
		if found, err := key.Of(ctx, content.Object); err == nil && found != "" {
			if kept.keys == nil {
				kept.keys = map[string]string{}
			}
			kept.keys[text] = found
		}
	}
	return kept, nil
}

// ready returns an API error while the objects are not known.
func (o *objects) ready() error {
	name := o.resource.GroupResource().String()
	if failed := o.failed.Load(); failed != nil {
		return unknown("%s cannot be read: %v", name, *failed)
	}
	if !o.informer.HasSynced() {
		return unknown("%s have not been read yet", name)
	}
	if since := o.unwatched.Load(); since != nil && o.clock.Since(*since) > trusted {
		return unknown("%s cannot be read: the watch of them has ended, and no other one has begun", name)
	}
	return nil
}

// get returns the object of a name, or nil.
func (o *objects) get(namespace, name string) (*object, error) {
	if err := o.ready(); err != nil {
		return nil, err
	}
	found, exists, err := o.informer.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return nil, err
	}
	return found.(*object), nil
}

// related returns the object that has a key, or an error. Of several it is the one that was created first, so that a user who
// may create candidates neither stops nor changes the tokens of objects whose related object was there before.
func (o *objects) related(text, key string) (*object, error) {
	if err := o.ready(); err != nil {
		return nil, err
	}
	var found []any
	if key != "" {
		var err error
		if found, err = o.informer.GetIndexer().ByIndex(text, key); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s have the key %q", o.resource.Resource, key)
	}
	return slices.MinFunc(found, func(a, b any) int {
		x, y := a.(*object), b.(*object)
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.UID, y.UID))
	}).(*object), nil
}
