// Package contexts follows the objects that ContextKinds make contexts of tokens. In go the ContextKinds of the server's own storage and
// the objects of the cluster's API, each followed by a watch; out come an object's uid, claims and references, or an API error while these
// are not known. It reads with the server's own rights, and does not review a caller's.
package contexts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/storagewatch"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

// Follower follows ContextKinds and their objects.
type Follower struct {
	client     dynamic.Interface
	kinds      cache.SharedIndexInformer
	deliveries Deliveries
	clock      clock.PassiveClock
	// delivering are the resources for which Deliveries was called.
	delivering sets.Set[schema.GroupResource]
	// gone are objects with bindings that were deleted lately.
	gone ended
	// readers counts the lists that were begun.
	readers uint64
	// current is nil until the ContextKinds have been read.
	current atomic.Pointer[landscape]
}

// landscape is a snapshot of the kinds and objects that are followed. It is replaced whole.
type landscape struct {
	kinds map[schema.GroupVersionKind]*Kind
	// seeds are the objects that stand for workload clusters; nil without such a ContextKind.
	seeds *Kind
	read  map[schema.GroupVersionResource]*objects
	// invalid are stored ContextKinds that this version of the server cannot use, and why.
	invalid []string
}

// New returns a Follower, which reads nothing until Run. It calls Deliveries with what has to be delivered.
func New(storage storagewatch.Storage, client dynamic.Interface, deliveries Deliveries, clock clock.PassiveClock) *Follower {
	return &Follower{gone: ended{clock: clock}, client: client, deliveries: deliveries, clock: clock, delivering: sets.New[schema.GroupResource](), kinds: cache.NewSharedIndexInformer(storagewatch.Source(storage), &v1alpha1.ContextKind{}, 0, cache.Indexers{})}
}

// Run follows until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	nudge := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	registration, err := f.kinds.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { nudge() }, UpdateFunc: func(any, any) { nudge() }, DeleteFunc: func(any) { nudge() },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "ContextKinds are not followed: token requests with their objects are refused")
		return
	}
	go f.kinds.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	for {
		f.follow(ctx)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// follow starts and stops readers as the ContextKinds require. Objects of an unchanged view are not listed again.
func (f *Follower) follow(ctx context.Context) {
	stored := make([]*v1alpha1.ContextKind, 0)
	for _, each := range f.kinds.GetStore().List() {
		stored = append(stored, each.(*v1alpha1.ContextKind))
	}
	slices.SortFunc(stored, func(a, b *v1alpha1.ContextKind) int { return strings.Compare(a.Name, b.Name) })
	next := &landscape{kinds: map[schema.GroupVersionKind]*Kind{}, read: map[schema.GroupVersionResource]*objects{}}
	views := map[schema.GroupVersionResource]view{}
	for _, each := range stored {
		compiled, errs := contextkind.Compile(each.Spec)
		if err := errors.Join(newer.Check(each), errs.ToAggregate()); err != nil {
			klog.FromContext(ctx).Error(err, "A stored ContextKind is invalid: its objects are no contexts", "contextKind", each.Name)
			next.invalid = append(next.invalid, fmt.Sprintf("ContextKind %s is invalid: %v", each.Name, err))
			continue
		}
		kind := &Kind{Kind: compiled}
		for _, other := range next.kinds {
			if conflict := compiled.Conflict(other.Kind); conflict != "" {
				kind.disputed, other.disputed = other.Name()+": "+conflict, each.Name+": "+conflict
			}
		}
		next.kinds[compiled.Object] = kind
		if compiled.Claim == contextkind.ClusterClaim {
			next.seeds = kind
		}
		addViews(views, compiled, each.Spec)
	}
	before := f.current.Load()
	started := map[*objects]context.Context{}
	for resource, wanted := range views {
		if before != nil && before.read[resource] != nil && before.read[resource].view.same(wanted) {
			next.read[resource] = before.read[resource]
			continue
		}
		reader, err := newObjects(f.client, resource, wanted, &f.gone, f.clock)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Objects of a ContextKind are not followed", "resource", resource.GroupResource().String())
			continue
		}
		f.readers++
		reader.number = f.readers
		started[reader], reader.stop = context.WithCancel(ctx)
		next.read[resource] = reader
	}
	for _, kind := range next.kinds {
		kind.read = next.read
	}
	f.current.Store(next)
	f.deliver(next, started)
	for reader, following := range started {
		go reader.informer.RunWithContext(following)
	}
	if before == nil {
		return
	}
	for resource, reader := range before.read {
		if next.read[resource] != reader {
			reader.stop()
		}
	}
}

// addViews adds the view of each resource that a kind needs.
func addViews(views map[schema.GroupVersionResource]view, kind *contextkind.Kind, spec v1alpha1.ContextKindSpec) {
	own := views[kind.Resource]
	text, _ := json.Marshal(spec) // strings and lists of them
	own.kind, own.spec = kind, string(text)
	views[kind.Resource] = own
	for _, related := range kind.Related {
		v := views[related.Resource]
		if v.keys == nil {
			v.keys = map[string]contextkind.CandidateKey{}
		}
		v.keys[related.Key.Text] = related.Key
		views[related.Resource] = v
	}
}

// HasSynced reports whether the ContextKinds and all their objects have been read.
func (f *Follower) HasSynced() bool {
	current := f.current.Load()
	if current == nil {
		return false
	}
	for _, reader := range current.read {
		if reader.ready() != nil {
			return false
		}
	}
	return true
}

// Kind returns a kind of objects, or nil if no ContextKind has it. The error is 503 until the ContextKinds have been read.
func (f *Follower) Kind(apiVersion, kind string) (*Kind, error) {
	current := f.current.Load()
	if current == nil {
		return nil, unknown("the ContextKinds have not been read yet")
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, nil
	}
	return current.or(current.kinds[version.WithKind(kind)])
}

// or is for a kind that may be missing because its ContextKind is invalid: the error is 503 then.
func (l *landscape) or(kind *Kind) (*Kind, error) {
	if kind == nil && len(l.invalid) > 0 {
		return nil, unknown("%s", l.invalid[0])
	}
	return kind, nil
}

// KindOf returns the kind of objects of a group, in whatever version its ContextKind has it; nil if no ContextKind has it. The error is that of Kind.
func (f *Follower) KindOf(group, kind string) (*Kind, error) {
	current := f.current.Load()
	if current == nil {
		return nil, unknown("the ContextKinds have not been read yet")
	}
	for object, found := range current.kinds {
		if object.Group == group && object.Kind == kind {
			return found, nil
		}
	}
	return current.or(nil)
}

// ClusterUID returns the uid of the object that stands for a workload cluster, or an empty one. The error is 503 while that is not known.
func (f *Follower) ClusterUID(name string) (types.UID, error) {
	current := f.current.Load()
	switch {
	case current == nil:
		return "", unknown("the ContextKinds have not been read yet")
	case current.seeds == nil:
		_, err := current.or(nil)
		return "", err
	}
	found, err := current.seeds.Find("", name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return found.UID, err
}

// Supported lists the kinds of objects for messages.
func (f *Follower) Supported() []string {
	current := f.current.Load()
	if current == nil {
		return nil
	}
	var supported []string
	for kind := range current.kinds {
		supported = append(supported, kind.GroupVersion().String()+" "+kind.Kind)
	}
	slices.Sort(supported)
	return supported
}

func unknown(format string, args ...any) error {
	return unavailable.New("what context objects use is not known: "+format, args...)
}
