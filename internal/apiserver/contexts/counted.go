package contexts

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

// Counted is an object with a binding, as it was last seen.
type Counted struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             types.UID
	// Amounts are what it uses, and Fault is why that is not known.
	Amounts contextkind.Amounts
	Fault   string
}

// KindFor returns the kind of objects of a resource; nil if no ContextKind has it. The error is 503 until the ContextKinds have been read, and
// 409 where two conflict.
func (f *Follower) KindFor(resource schema.GroupResource) (*contextkind.Kind, error) {
	current := f.current.Load()
	if current == nil {
		return nil, unknown("the ContextKinds have not been read yet")
	}
	for _, kind := range current.kinds {
		if kind.Resource.GroupResource() != resource {
			continue
		}
		if dispute := kind.dispute(); dispute != "" {
			return nil, apierrors.NewConflict(resource, "", fmt.Errorf("%s", dispute))
		}
		return kind.Kind, nil
	}
	_, err := current.or(nil)
	return nil, err
}

// Bound returns the objects that refer to any of some bindings themselves. The error is 503 while they are not known.
func (f *Follower) Bound(bindings []types.NamespacedName) ([]Counted, error) {
	current := f.current.Load()
	if current == nil {
		return nil, unknown("the ContextKinds have not been read yet")
	}
	if _, err := current.or(nil); err != nil {
		return nil, err // its objects may refer to one of the bindings
	}
	var found []Counted
	for _, kind := range current.kinds {
		reader := current.read[kind.Resource]
		if reader == nil {
			return nil, unknown("%s are not followed", kind.Resource.GroupResource())
		}
		if err := reader.ready(); err != nil {
			return nil, err
		}
		for _, binding := range bindings {
			objects, err := reader.informer.GetIndexer().ByIndex(byBinding, binding.String())
			if err != nil {
				return nil, fmt.Errorf("look up %s by binding: %w", kind.Resource.GroupResource(), err)
			}
			for _, each := range objects {
				kept := each.(*object)
				found = append(found, Counted{kind.Resource.GroupResource(), kept.Namespace, kept.Name, kept.UID, kept.amounts, kept.amountsFault})
			}
		}
	}
	return found, nil
}

// ended are objects with bindings that were seen, and are not there any more.
type ended struct {
	clock clock.PassiveClock
	lock  sync.Mutex
	at    map[types.UID]time.Time
}

// endedFor is for how long a deleted object is known: longer than a reservation for its creation lasts.
const endedFor = 5 * time.Minute

func (e *ended) add(deleted any) {
	if last, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = last.Obj
	}
	found, ok := deleted.(*object)
	if !ok || len(found.uses.Bindings) == 0 {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	now := e.clock.Now()
	if e.at == nil {
		e.at = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(e.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) > endedFor })
	e.at[found.UID] = now
}

// Ended reports whether an object with bindings was seen, and deleted, in the last minutes.
func (f *Follower) Ended(uid types.UID) bool {
	f.gone.lock.Lock()
	defer f.gone.lock.Unlock()
	_, ended := f.gone.at[uid]
	return ended
}

// Read returns an object as it is stored now, or nil. The server has the rights to list and watch: so it lists the one of the name.
func (f *Follower) Read(ctx context.Context, kind *contextkind.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	list, err := f.client.Resource(kind.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, unknown("%s cannot be read: %v", kind.Resource.GroupResource(), err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
