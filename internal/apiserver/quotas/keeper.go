// Package quotas keeps what context objects use within Quotas. In go writes of these objects before they are stored, out comes which of them
// would exceed a limit; what the others need is reserved by compare-and-swap in a ledger of the server's storage, which all replicas share,
// and settled by what is stored. It writes no object of another API.
package quotas

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/internal/apiserver/storagewatch"
	"github.com/credence-id/credence/internal/apiserver/unavailable"
)

const (
	// sweepEvery is how often ledgers are compared with what is stored.
	sweepEvery = 10 * time.Second
	// maxObserved bounds how many objects are read for one write that is refused, and for each ledger at once.
	maxObserved = 50
	// byQuota is the index of bindings by the Quotas that they list.
	byQuota = "quota"
)

// Objects knows the context objects. Its errors are API errors.
type Objects interface {
	// KindFor returns the kind of objects of a resource, or nil.
	KindFor(resource schema.GroupResource) (*contextkind.Kind, error)
	// Bound returns the objects that refer to any of some bindings, as they were last seen.
	Bound(bindings []types.NamespacedName) ([]contexts.Counted, error)
	// Ended reports whether an object was seen, and deleted, in the last minutes.
	Ended(uid types.UID) bool
	// Read returns an object as it is stored now, or nil.
	Read(ctx context.Context, kind *contextkind.Kind, namespace, name string) (*unstructured.Unstructured, error)
}

// Bindings has the CredentialsBindings of the server's storage.
type Bindings interface {
	rest.Getter
	storagewatch.Storage
}

// Quotas has the Quotas of the server's storage.
type Quotas interface {
	rest.Getter
	List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error)
	// Report writes the status of a Quota, unless it has it already.
	Report(ctx context.Context, of *v1alpha1.Quota, status v1alpha1.QuotaStatus) error
}

// Keeper keeps the ledgers.
type Keeper struct {
	quotas   Quotas
	bindings Bindings
	listed   cache.SharedIndexInformer
	objects  Objects
	store    *store
	clock    clock.PassiveClock
}

// New returns a Keeper, which knows no bindings until Run.
func New(options generic.RESTOptionsGetter, quotas Quotas, bindings Bindings, objects Objects, clock clock.PassiveClock) (*Keeper, error) {
	s, err := newStore(options)
	if err != nil {
		return nil, err
	}
	listed := cache.NewSharedIndexInformer(storagewatch.Source(bindings), &v1alpha1.CredentialsBinding{}, 0, cache.Indexers{byQuota: func(obj any) ([]string, error) {
		var names []string
		for _, each := range obj.(*v1alpha1.CredentialsBinding).Quotas {
			names = append(names, nameOf(each).String())
		}
		return names, nil
	}})
	return &Keeper{quotas, bindings, listed, objects, s, clock}, nil
}

// Destroy ends the storage of the ledgers.
func (k *Keeper) Destroy() { k.store.destroy() }

// Run settles what was reserved until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	go k.listed.RunWithContext(ctx)
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "What was reserved of Quotas could not be settled, which is tried again")
		}
	}, sweepEvery, 0.5, true)
}

// HasSynced reports whether the bindings have been read.
func (k *Keeper) HasSynced() bool { return k.listed.HasSynced() }

// sweep settles all ledgers, removes those of Quotas that do not exist any more, and reports what the others have.
func (k *Keeper) sweep(ctx context.Context) error {
	if !k.HasSynced() {
		return nil
	}
	all, err := k.store.all(ctx)
	if err != nil {
		return err
	}
	ledgers := counted{}
	for i := range all {
		of := &all[i]
		found, err := k.quota(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
		switch {
		case err != nil:
			return err
		case found == nil || found.UID != of.Quota:
			err = k.store.remove(ctx, of)
		default:
			var entries map[string]entry
			_, entries, err = k.settle(ctx, of)
			ledgers.add(of, entries)
		}
		if err != nil {
			return err
		}
	}
	return k.report(ctx, ledgers)
}

// settle makes entries of a ledger what their objects are, where the server has seen others, or waits for a write. It returns the objects that
// were seen, and do not count any more, and the entries.
func (k *Keeper) settle(ctx context.Context, of *Ledger) (gone sets.Set[string], settled map[string]entry, err error) {
	seen, err := k.seen(of)
	if err != nil {
		return nil, nil, err
	}
	entries, err := k.store.read(ctx, of)
	if err != nil {
		return nil, nil, fmt.Errorf("read ledger: %w", err)
	}
	gone = sets.New[string]()
	began, observed, after := k.clock.Now(), 0, map[string]entry{}
	for key, each := range fill(entries, seen) {
		if known, ok := seen[key]; len(each.Reservations) == 0 && ok && known.same(each) && entries[key].same(each) {
			continue
		}
		if observed++; observed > maxObserved {
			break
		}
		found, err := k.observe(ctx, of, key)
		if err != nil {
			return nil, nil, err
		}
		if !found.counts {
			gone.Insert(key)
		}
		if next := each.after(found, began, k.objects.Ended); !next.same(entries[key]) {
			after[key] = next
		}
	}
	if len(after) == 0 {
		return gone, entries, nil
	}
	err = k.store.update(ctx, of, func(current map[string]entry) (map[string]entry, error) {
		next := map[string]entry{}
		maps.Copy(next, current)
		for key, each := range after {
			// One that was changed since was reserved for: then what was observed may be older.
			if current[key].Last != entries[key].Last || !current[key].same(entries[key]) {
				continue
			}
			if next[key] = each; each.empty() {
				delete(next, key)
			}
		}
		settled = next
		return next, nil
	})
	return gone, settled, err
}

// fill adds the objects to a ledger that were seen and are not in it.
func fill(entries, seen map[string]entry) map[string]entry {
	filled := maps.Clone(seen)
	maps.Copy(filled, entries)
	return filled
}

// seen are the objects that count for a ledger, as the server last saw them.
func (k *Keeper) seen(of *Ledger) (map[string]entry, error) {
	if !k.HasSynced() {
		return nil, unavailable.New("the CredentialsBindings have not been read yet")
	}
	bindings, err := k.listed.GetIndexer().ByIndex(byQuota, of.Namespace+"/"+of.Name)
	if err != nil {
		return nil, fmt.Errorf("look up bindings by Quota: %w", err)
	}
	var names []types.NamespacedName
	for _, each := range bindings {
		binding := each.(*v1alpha1.CredentialsBinding)
		names = append(names, types.NamespacedName{Namespace: binding.Namespace, Name: binding.Name})
	}
	objects, err := k.objects.Bound(names)
	if err != nil {
		return nil, err
	}
	seen := map[string]entry{}
	for _, each := range objects {
		if of.Project == "" || each.Namespace == of.Project {
			seen[keyOf(each.Resource, each.Namespace, each.Name)] = entry{UID: each.UID, Amounts: each.Amounts, Fault: each.Fault}
		}
	}
	return seen, nil
}

// observe reads an object of a ledger.
func (k *Keeper) observe(ctx context.Context, of *Ledger, key string) (observation, error) {
	parts := strings.SplitN(key, "/", 3)
	kind, err := k.objects.KindFor(schema.ParseGroupResource(parts[0]))
	if err != nil || kind == nil {
		return observation{}, err
	}
	object, err := k.objects.Read(ctx, kind, parts[1], parts[2])
	if err != nil || object == nil {
		return observation{}, err
	}
	found := observation{uid: object.GetUID(), version: object.GetResourceVersion()}
	bindings, err := kind.Bindings(ctx, object.Object, parts[1])
	if err != nil {
		found.counts, found.fault = true, err.Error() // it did when it was written
		return found, nil
	}
	listed, _, err := k.listedBy(ctx, bindings)
	if err != nil {
		return found, err
	}
	_, found.counts = listed[types.NamespacedName{Namespace: of.Namespace, Name: of.Name}]
	if found.amounts, err = kind.Amounts(ctx, object.Object); err != nil {
		found.fault = err.Error()
	}
	return found, nil
}

// listedBy returns the Quotas that some bindings list now, each with one that does, and the bindings that do not exist.
func (k *Keeper) listedBy(ctx context.Context, bindings []types.NamespacedName) (listed map[types.NamespacedName]types.NamespacedName, missing []types.NamespacedName, err error) {
	listed = map[types.NamespacedName]types.NamespacedName{}
	for _, name := range bindings {
		found, err := k.bindings.Get(request.WithNamespace(ctx, name.Namespace), name.Name, &metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			missing = append(missing, name)
			continue
		} else if err != nil {
			return nil, nil, err
		}
		binding := found.(*v1alpha1.CredentialsBinding)
		if err := newer.Check(binding); err != nil {
			return nil, nil, err
		}
		for _, each := range binding.Quotas {
			listed[nameOf(each)] = name
		}
	}
	return listed, missing, nil
}

// quota returns a Quota as it is now, or nil.
func (k *Keeper) quota(ctx context.Context, name types.NamespacedName) (*v1alpha1.Quota, error) {
	found, err := k.quotas.Get(request.WithNamespace(ctx, name.Namespace), name.Name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	limits := found.(*v1alpha1.Quota)
	return limits, newer.Check(limits)
}

// ledgerOf is the ledger of a Quota that counts the objects of a namespace.
func ledgerOf(limits *v1alpha1.Quota, namespace string) *Ledger {
	of := &Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: limits.Namespace, Name: limits.Name}, Quota: limits.UID}
	if quota.OfProjects(limits) {
		of.Project = namespace
	}
	return of
}

// reserve reserves what a write needs, or returns why it would exceed a limit.
func (k *Keeper) reserve(ctx context.Context, limits *v1alpha1.Quota, w write, grows func(string) bool) (string, error) {
	of := ledgerOf(limits, w.namespace)
	var gone sets.Set[string]
	try := func() (refusal string, err error) {
		seen, err := k.seen(of)
		if err != nil {
			return "", err
		}
		// If one was made anew since, its write is in the ledger.
		maps.DeleteFunc(seen, func(key string, _ entry) bool { return gone.Has(key) })
		change := func(entries map[string]entry) (next map[string]entry, err error) {
			next, refusal = reserve(fill(entries, seen), w.key, w.reservation, limits.Spec.Metrics, grows)
			if refusal != "" {
				return entries, errRefused
			}
			return next, nil
		}
		if !w.DryRun {
			err = k.store.update(ctx, of, change)
		} else if entries, failed := k.store.read(ctx, of); failed != nil {
			err = failed
		} else {
			_, err = change(entries)
		}
		if refusal != "" {
			return refusal, nil
		}
		return "", err
	}
	refusal, err := try()
	if refusal == "" || err != nil {
		return "", err
	}
	// An object that was deleted a moment ago, or written otherwise, may make room.
	if gone, _, err = k.settle(ctx, of); err != nil {
		return "", err
	}
	return try()
}

// release gives back what a request has reserved. Where that fails it is released in time.
func (k *Keeper) release(ctx context.Context, limits *v1alpha1.Quota, w write) {
	err := k.store.update(ctx, ledgerOf(limits, w.namespace), func(entries map[string]entry) (map[string]entry, error) {
		next := maps.Clone(entries)
		if each, ok := next[w.key]; ok {
			if next[w.key] = each.released(w.Request); next[w.key].empty() {
				delete(next, w.key)
			}
		}
		return next, nil
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "What a refused write has reserved is released later", "quota", klog.KObj(limits))
	}
}

func nameOf(reference v1alpha1.CredentialsReference) types.NamespacedName {
	return types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
}

func keyOf(resource schema.GroupResource, namespace, name string) string {
	return resource.String() + "/" + namespace + "/" + name
}

// namespaceOf is the namespace in a key.
func namespaceOf(key string) string { return strings.SplitN(key, "/", 3)[1] }

// sorted are the Quotas in one order: two writes never wait for each other in any case, and messages stay the same.
func sorted(listed map[types.NamespacedName]types.NamespacedName) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(listed), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}
