package quotas

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	testclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/apiservertest"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/quota"
	"github.com/credence-id/credence/test/testkit"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

var shoots = schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}

// noon is when a test begins.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// storageOf returns an empty storage.
func storageOf(t *testing.T) generic.RESTOptionsGetter {
	t.Helper()
	scheme := runtime.NewScheme()
	AddToScheme(scheme)
	return apiservertest.NewStorage(t).RESTOptions(scheme, v1alpha1.SchemeGroupVersion)
}

// world has Shoots, as an API server stores them, and Quotas and bindings.
type world struct {
	kind  *contextkind.Kind
	clock *testclock.FakePassiveClock

	lock     sync.Mutex
	version  int
	shoots   map[string]*unstructured.Unstructured
	ended    map[types.UID]bool
	quotas   map[string]*v1alpha1.Quota
	bindings map[string]*v1alpha1.CredentialsBinding
	// reports counts what was written into Quotas.
	reports int
	// away is why no Shoot can be read.
	away error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kind, errs := contextkind.Compile(identityv1alpha1.ContextKindSpec{
		Object: identityv1alpha1.ContextResource{Group: shoots.Group, Version: "v1beta1", Resource: shoots.Resource, Kind: "Shoot"}, Claim: "shoot",
		References: []identityv1alpha1.ContextReference{{Name: "infrastructure", CredentialsBindings: "[object.spec.binding]"}},
		Usage:      "{'cpu': object.spec.cpu, 'memory': object.spec.?memory.orValue('1Gi')}",
		Expires:    "object.spec.?ends.orValue('')",
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return &world{
		kind: kind, clock: testclock.NewFakePassiveClock(noon), shoots: map[string]*unstructured.Unstructured{}, ended: map[types.UID]bool{},
		quotas: map[string]*v1alpha1.Quota{}, bindings: map[string]*v1alpha1.CredentialsBinding{},
	}
}

// limit makes a Quota in namespace quotas.
func (w *world) limit(name, scope string, metrics map[string]string) *v1alpha1.Quota {
	made := &v1alpha1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "quotas", Name: name, UID: types.UID("uid-of-" + name)}}
	made.Spec.Scope = v1alpha1.QuotaScope{APIVersion: "v1", Kind: scope}
	if scope == "Project" {
		made.Spec.Scope.APIVersion = "core.gardener.cloud/v1beta1"
	}
	made.Spec.Metrics = map[string]resource.Quantity{}
	for metric, text := range metrics {
		made.Spec.Metrics[metric] = resource.MustParse(text)
	}
	w.quotas["quotas/"+name] = made
	return made
}

// bind makes a binding that lists Quotas.
func (w *world) bind(namespace, name string, quotas ...string) {
	made := &v1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, each := range quotas {
		made.Quotas = append(made.Quotas, v1alpha1.CredentialsReference{Namespace: "quotas", Name: each})
	}
	w.bindings[namespace+"/"+name] = made
}

func shoot(namespace, name, binding, cpu string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": shoots.Group + "/v1beta1", "kind": "Shoot", "spec": map[string]any{"binding": binding, "cpu": cpu}}}
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// with returns a copy of an object with another field of its spec.
func with(object *unstructured.Unstructured, field string, value any) *unstructured.Unstructured {
	changed := object.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, value, "spec", field); err != nil {
		panic(err)
	}
	return changed
}

// replica is a Keeper, which sees the Shoots as they were.
type replica struct {
	*world
	*Keeper
	lock sync.Mutex
	seen map[string]*unstructured.Unstructured
	// meanwhile is called after an object was read.
	meanwhile func()
}

// replica returns one that shares the storage.
func (w *world) replica(t *testing.T, options generic.RESTOptionsGetter) *replica {
	t.Helper()
	r := &replica{world: w, seen: map[string]*unstructured.Unstructured{}}
	var err error
	if r.Keeper, err = New(options, limits{getter[*v1alpha1.Quota]{w, w.quotas}}, bindings{getter[*v1alpha1.CredentialsBinding]{w, w.bindings}}, r, w.clock); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Destroy)
	go r.listed.RunWithContext(t.Context())
	testkit.Eventually(t, "the bindings are read", r.listed.HasSynced)
	return r
}

// look has the replica see all Shoots as they are.
func (r *replica) look() {
	r.world.lock.Lock()
	seen := maps.Clone(r.shoots)
	r.world.lock.Unlock()
	r.lock.Lock()
	r.seen = seen
	r.lock.Unlock()
}

// KindFor implements Objects.
func (r *replica) KindFor(resource schema.GroupResource) (*contextkind.Kind, error) {
	if resource != shoots {
		return nil, nil
	}
	return r.kind, nil
}

// Bound implements Objects.
func (r *replica) Bound(bindings []types.NamespacedName) ([]contexts.Counted, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	var found []contexts.Counted
	for _, each := range r.seen {
		names, err := r.kind.Bindings(context.Background(), each.Object, each.GetNamespace())
		if err != nil {
			continue
		}
		for _, binding := range bindings {
			if names[0] == binding {
				counted := contexts.Counted{Resource: shoots, Namespace: each.GetNamespace(), Name: each.GetName(), UID: each.GetUID()}
				if counted.Amounts, err = r.kind.Amounts(context.Background(), each.Object); err != nil {
					counted.Fault = err.Error()
				}
				found = append(found, counted)
			}
		}
	}
	return found, nil
}

// Ended implements Objects.
func (r *replica) Ended(uid types.UID) bool {
	r.world.lock.Lock()
	defer r.world.lock.Unlock()
	return r.ended[uid]
}

// Read implements Objects.
func (r *replica) Read(_ context.Context, _ *contextkind.Kind, namespace, name string) (*unstructured.Unstructured, error) {
	if r.meanwhile != nil {
		defer r.meanwhile()
	}
	r.world.lock.Lock()
	defer r.world.lock.Unlock()
	return r.shoots[namespace+"/"+name], r.away
}

// asked is the review of a write of a Shoot over the one that is stored, which it returns.
func (r *replica) asked(request string, object *unstructured.Unstructured) Write {
	r.world.lock.Lock()
	defer r.world.lock.Unlock()
	w := Write{Request: types.UID(request), Resource: shoots, Object: object.DeepCopy(), Old: r.shoots[object.GetNamespace()+"/"+object.GetName()]}
	if w.Old == nil {
		w.Object.SetUID(types.UID("uid-by-" + request))
		return w
	}
	w.Object.SetUID(w.Old.GetUID())
	return w
}

// persist stores what was reviewed, unless another write came first: as an API server does, by compare-and-swap.
func (w *world) persist(reviewed Write) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	key := reviewed.Object.GetNamespace() + "/" + reviewed.Object.GetName()
	if w.shoots[key] != reviewed.Old {
		return false
	}
	w.version++
	stored := reviewed.Object.DeepCopy()
	stored.SetResourceVersion(strconv.Itoa(w.version))
	if reviewed.Old == nil {
		stored.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
	} else {
		stored.SetCreationTimestamp(reviewed.Old.GetCreationTimestamp())
	}
	w.shoots[key] = stored
	return true
}

func (w *world) remove(key string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if gone := w.shoots[key]; gone != nil {
		w.ended[gone.GetUID()] = true
	}
	delete(w.shoots, key)
}

// used is what all Shoots of a binding use.
func (w *world) used(name string) resource.Quantity {
	w.lock.Lock()
	defer w.lock.Unlock()
	var sum resource.Quantity
	for _, each := range w.shoots {
		amounts, err := w.kind.Amounts(context.Background(), each.Object)
		if err != nil {
			panic(err)
		}
		sum.Add(amounts[name])
	}
	return sum
}

// getter reads objects by namespace and name.
type getter[T runtime.Object] struct {
	world   *world
	objects map[string]T
}

func (g getter[T]) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	g.world.lock.Lock()
	defer g.world.lock.Unlock()
	if found, ok := g.objects[request.NamespaceValue(ctx)+"/"+name]; ok {
		return found.DeepCopyObject(), nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("things"), name)
}

type limits struct{ getter[*v1alpha1.Quota] }

// List implements Quotas.
func (l limits) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	l.world.lock.Lock()
	defer l.world.lock.Unlock()
	list := &v1alpha1.QuotaList{}
	for _, each := range l.objects {
		list.Items = append(list.Items, *each.DeepCopy())
	}
	return list, nil
}

// Report implements Quotas.
func (l limits) Report(_ context.Context, of *v1alpha1.Quota, status v1alpha1.QuotaStatus) error {
	l.world.lock.Lock()
	defer l.world.lock.Unlock()
	reported := l.objects[of.Namespace+"/"+of.Name]
	reported.Status = quota.Renewed(reported.Status, status)
	l.world.reports++
	return nil
}

type bindings struct {
	getter[*v1alpha1.CredentialsBinding]
}

func (b bindings) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	list := &v1alpha1.CredentialsBindingList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, each := range b.objects {
		list.Items = append(list.Items, *each)
	}
	return list, nil
}

func (bindings) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// write reviews and stores a Shoot, or returns why it is refused.
func (r *replica) write(t *testing.T, request string, object *unstructured.Unstructured) string {
	t.Helper()
	reviewed := r.asked(request, object)
	refused := testkit.Need(r.Admit(t.Context(), reviewed))(t)
	if refused == "" && !r.persist(reviewed) {
		t.Fatal(fmt.Errorf("%s is not stored", object.GetName()))
	}
	return refused
}
