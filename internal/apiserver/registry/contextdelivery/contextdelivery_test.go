package contextdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	authentication "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/apiserver/registry/contextdelivery"
	"github.com/credence-id/credence/test/testkit"
)

// storage has a list, and events that come after it.
type storage struct {
	list   runtime.Object
	events *watch.FakeWatcher
}

func (s storage) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return s.list.DeepCopyObject(), nil
}

func (s storage) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

// world is a server whose inputs a test changes.
type world struct {
	*contextdelivery.REST
	index                *contextdelivery.Index
	identities, bindings *watch.FakeWatcher

	mu       sync.Mutex
	clusters map[string]*clusters.Cluster
	away     error
}

func (w *world) Of(name string) (*clusters.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[name], nil
}

func (w *world) Delivering() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func cluster(name string) *clusters.Cluster {
	return &clusters.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1alpha1.WorkloadClusterSpec{Identities: v1alpha1.WorkloadClusterIdentities{FromContexts: true}}}
}

func identity(name, role string) *authentication.WorkloadIdentity {
	wi := &authentication.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: name, ResourceVersion: "1"}}
	wi.Spec.TargetSystem.Type = "aws"
	wi.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"role":"` + role + `"}`)}
	return wi
}

func binding(name, to string) *authentication.CredentialsBinding {
	b := &authentication.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "fruit", Name: name, ResourceVersion: "1"}, Provider: authentication.CredentialsProvider{Type: "aws"}}
	if to == "" {
		b.SecretRef = &authentication.CredentialsReference{Namespace: "fruit", Name: "static"}
	} else {
		b.WorkloadIdentityRef = &authentication.CredentialsReference{Namespace: "fruit", Name: to}
	}
	return b
}

func newWorld(t testing.TB) *world { return newWorldAt(t, clock.RealClock{}) }

func newWorldAt(t testing.TB, now clock.WithTicker) *world {
	t.Helper()
	w := &world{
		index: contextdelivery.NewIndex(time.Unix(1, 0)), identities: watch.NewFake(), bindings: watch.NewFake(),
		clusters: map[string]*clusters.Cluster{"east": cluster("east"), "west": cluster("west")},
	}
	var err error
	w.REST, err = contextdelivery.NewREST(contextdelivery.Config{
		Index:      w.index,
		Identities: storage{&authentication.WorkloadIdentityList{Items: []authentication.WorkloadIdentity{*identity("banana", "a"), *identity("kiwi", "k")}}, w.identities},
		Bindings:   storage{&authentication.CredentialsBindingList{Items: []authentication.CredentialsBinding{*binding("infra", "banana")}}, w.bindings},
		Clusters:   w, Objects: w, Clock: now,
	})
	testkit.Must(t, err)
	return w
}

func as(t testing.TB, name string) context.Context {
	return request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
}

// source is one of Shoots, and another a later list of them.
var (
	source  = contexts.Source{Resource: schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}}
	another = contexts.Source{Resource: source.Resource, List: 1}
)

// placed is a Shoot with deliveries: SECRET=IDENTITY, or with a binding, SECRET=by:BINDING.
func placed(name string, on []string, deliveries ...string) contexts.Placed {
	found := contexts.Placed{Object: v1alpha1.DeliveryContext{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: "fruit", Name: name, UID: types.UID("uid-" + name)}, Clusters: on}
	for _, each := range deliveries {
		secret, to, _ := strings.Cut(each, "=")
		to, bound := strings.CutPrefix(to, "by:")
		found.Deliveries = append(found.Deliveries, contextkind.Delivery{
			Secret: types.NamespacedName{Namespace: "shoot", Name: secret}, Reference: "r", To: types.NamespacedName{Namespace: "fruit", Name: to}, Bound: bound,
		})
	}
	return found
}

func code(err error) int32 {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// line is a delivery: SECRET=IDENTITY with its config, or SECRET!PROBLEM.
func line(spec v1alpha1.ContextDeliverySpec) string {
	if spec.Problem != "" {
		return spec.Secret.Name + "!" + spec.Problem + spec.Config + spec.Provider
	}
	if spec.WorkloadIdentity == nil {
		return spec.Secret.Name + "=data of " + spec.CredentialsBinding.Name + " for " + spec.Provider + spec.Config
	}
	return spec.Secret.Name + "=" + spec.WorkloadIdentity.Name + " " + strings.TrimSpace(spec.Config)
}

// seen is what a user sees now, in order.
func (w *world) seen(t *testing.T, name string) string {
	t.Helper()
	list, err := w.List(as(t, name), &internalversion.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, each := range list.(*v1alpha1.ContextDeliveryList).Items {
		lines = append(lines, line(each.Spec))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func (w *world) want(t *testing.T, name, want string) {
	t.Helper()
	var last string
	t.Cleanup(func() {
		if last != want {
			t.Logf("%s sees %s, want %s", name, last, want)
		}
	})
	testkit.Eventually(t, name+" sees "+want, func() bool {
		last = w.seen(t, name)
		return last == want
	})
}

// fill has everything be known.
func (w *world) fill(t testing.TB, objects ...contexts.Placed) {
	t.Helper()
	w.index.Follow(source, "")
	for _, each := range objects {
		w.index.Set(source, each)
	}
	w.index.Filled(source)
	w.Run(t.Context())
	testkit.Eventually(t, "deliveries are known", func() bool { _, err := w.List(as(t, "east"), &internalversion.ListOptions{}); return err == nil })
}

var east = []string{"east"}

func TestDeliveriesFollow(t *testing.T) {
	w := newWorld(t)
	w.fill(t, placed("foo", east, "cloudprovider=by:infra", "dns=kiwi"), placed("bar", []string{"west"}, "dns=kiwi"))
	const foo = "cloudprovider=banana role: a, dns=kiwi role: k"
	w.want(t, "east", foo)
	w.want(t, "west", "dns=kiwi role: k")

	w.index.Set(source, placed("foo", []string{"east", "west", "east"}, "cloudprovider=by:infra"))
	w.want(t, "east", "cloudprovider=banana role: a")
	w.want(t, "west", "cloudprovider=banana role: a, dns=kiwi role: k")
	w.index.Set(source, placed("foo", east, "cloudprovider=by:infra", "dns=kiwi"))
	w.want(t, "east", foo)
	w.want(t, "west", "dns=kiwi role: k")

	w.bindings.Modify(binding("infra", "kiwi"))
	w.want(t, "east", "cloudprovider=kiwi role: k, dns=kiwi role: k")
	w.identities.Modify(identity("kiwi", "z"))
	w.want(t, "east", "cloudprovider=kiwi role: z, dns=kiwi role: z")
	w.want(t, "west", "dns=kiwi role: z")
	w.bindings.Modify(binding("infra", ""))
	w.want(t, "east", "cloudprovider=data of infra for aws, dns=kiwi role: z")
	w.index.Follow(source, "two are at odds")
	w.want(t, "east", "cloudprovider!two are at odds, dns!two are at odds")
	w.index.Follow(source, "")
	w.bindings.Delete(binding("infra", ""))
	w.want(t, "east", "cloudprovider!CredentialsBinding fruit/infra does not exist, dns=kiwi role: z")
	w.identities.Delete(identity("kiwi", "z"))
	w.want(t, "west", "dns!WorkloadIdentity fruit/kiwi does not exist")
	w.bindings.Add(binding("infra", "banana"))
	w.identities.Add(identity("kiwi", "k"))
	w.want(t, "east", foo)

	// One Secret of two objects is that of the first one, on the cluster that has both.
	w.index.Set(source, placed("thief", []string{"east", "west"}, "cloudprovider=kiwi"))
	w.want(t, "east", "cloudprovider!Shoot fruit/foo, created earlier, has the Secret shoot/cloudprovider, too: it is delivered for that object alone, "+foo)
	w.want(t, "west", "cloudprovider=kiwi role: k, dns=kiwi role: k")
	w.index.Set(source, placed("thief", east, "other=kiwi"))
	w.want(t, "east", "cloudprovider=banana role: a, dns=kiwi role: k, other=kiwi role: k")
	w.index.Delete(source, "fruit", "thief")
	w.want(t, "east", foo)

	// A fault of the kind is one of all of its objects; an object at fault keeps its Secrets.
	w.index.Follow(source, "two are at odds")
	w.want(t, "east", "cloudprovider!two are at odds, dns!two are at odds")
	w.index.Follow(source, "")
	w.want(t, "east", foo)
	unknown := placed("foo", east, "dns=kiwi")
	unknown.Deliveries = append(unknown.Deliveries, contextkind.Delivery{Reference: "cert", Fault: "no such key"})
	w.index.Set(source, unknown)
	w.want(t, "east", "!no such key, dns=kiwi role: k")

	// An object that is made anew is another one.
	before, _ := w.List(as(t, "west"), &internalversion.ListOptions{})
	anew := placed("bar", []string{"west"}, "dns=kiwi")
	anew.Object.UID = "another"
	w.index.Set(source, anew)
	after, _ := w.List(as(t, "west"), &internalversion.ListOptions{})
	if a, b := before.(*v1alpha1.ContextDeliveryList).Items[0].Name, after.(*v1alpha1.ContextDeliveryList).Items[0].Name; a == b {
		t.Error("the delivery of an object that was made anew has the same name")
	}
	w.index.Forget(source.Resource)
	w.want(t, "east", "")
	w.want(t, "west", "")
}

// Another list of a resource takes the place of the former one at once, and not before it is whole.
func TestAnotherSource(t *testing.T) {
	w := newWorld(t)
	w.fill(t, placed("foo", east, "dns=kiwi"), placed("bar", east, "other=kiwi"))
	seen := w.follow(t, "east", "")
	seen.want(t, "ADDED dns=kiwi role: k", "ADDED other=kiwi role: k")
	w.index.Follow(another, "")
	if got := w.seen(t, "east"); !strings.Contains(got, "have not been read yet") {
		t.Errorf("while there is another list: %s", got)
	}
	w.index.Set(source, placed("late", east, "late=kiwi"))
	w.index.Delete(source, "fruit", "foo")
	w.index.Set(another, placed("foo", east, "dns=kiwi"))
	w.index.Filled(source)
	w.index.Filled(another)
	seen.want(t, "DELETED other=kiwi role: k")
	w.want(t, "east", "dns=kiwi role: k")
}

func TestUnknownIsNotNothing(t *testing.T) {
	w := newWorld(t)
	if got := w.seen(t, "east"); !strings.Contains(got, "workloadidentities have not been read yet") {
		t.Error(got)
	}
	w.index.Follow(source, "")
	w.Run(t.Context())
	testkit.Eventually(t, "shoots are missing", func() bool {
		return strings.Contains(w.seen(t, "east"), "shoots.core.gardener.cloud have not been read yet")
	})
	w.index.Filled(source)
	w.want(t, "east", "")
	w.set(func() { w.away = apierrors.NewServiceUnavailable("away") })
	for name, call := range map[string]func() error{
		"list":  func() error { _, err := w.List(as(t, "east"), &internalversion.ListOptions{}); return err },
		"watch": func() error { _, err := w.Watch(as(t, "east"), &internalversion.ListOptions{}); return err },
		"get":   func() error { _, err := w.Get(as(t, "east"), "a", nil); return err },
	} {
		if err := call(); code(err) != http.StatusServiceUnavailable {
			t.Errorf("%s: %v, want 503", name, err)
		}
	}
}

func TestCallers(t *testing.T) {
	w := newWorld(t)
	w.fill(t, placed("foo", east, "dns=kiwi"))
	list := testkit.Need(w.List(as(t, "east"), &internalversion.ListOptions{}))(t)
	name := list.(*v1alpha1.ContextDeliveryList).Items[0].Name
	testkit.Expect(t, testkit.Err(w.Get(as(t, "east"), name, nil)))
	if _, err := w.Get(as(t, "west"), name, nil); code(err) != http.StatusNotFound {
		t.Errorf("another cluster: %v, want 404", err)
	}
	left := as(t, "system:serviceaccount:workload-clusters:left-agent")
	if _, err := w.List(left, &internalversion.ListOptions{}); code(err) != http.StatusForbidden {
		t.Errorf("%v, want 403", err)
	}
	if _, err := w.Watch(left, &internalversion.ListOptions{}); code(err) != http.StatusForbidden {
		t.Errorf("%v, want 403", err)
	}
	if _, err := w.List(t.Context(), &internalversion.ListOptions{}); code(err) != http.StatusUnauthorized {
		t.Errorf("%v, want 401", err)
	}
	narrow := cluster("east")
	narrow.Spec.Identities.FromContexts = false
	w.set(func() { w.clusters["east"] = narrow })
	w.want(t, "east", "dns!WorkloadCluster east may not have identities of the namespace fruit: set spec.identities.fromContexts, or add it to spec.identities.namespaces")
	if got, err := w.Get(as(t, "east"), name, nil); err != nil || got.(*v1alpha1.ContextDelivery).Spec.Config != "" {
		t.Errorf("%v, %v", got, err)
	}
	listed := cluster("east")
	listed.Spec.Identities = v1alpha1.WorkloadClusterIdentities{Namespaces: []string{"fruit"}}
	w.set(func() { w.clusters["east"] = listed })
	w.want(t, "east", "dns=kiwi role: k")

	// So it is with the data of a binding.
	w.bindings.Add(binding("static", ""))
	w.index.Set(source, placed("foo", east, "cloudprovider=by:static"))
	w.want(t, "east", "cloudprovider=data of static for aws")
	w.set(func() { w.clusters["east"] = narrow })
	w.want(t, "east", "cloudprovider!WorkloadCluster east may not have data of bindings of the namespace fruit: set spec.identities.fromContexts, or add it to spec.identities.namespaces")
	w.set(func() { w.clusters["east"] = listed })

	// An object without a namespace widens nothing.
	global := placed("banana", []string{"east"}, "dns=kiwi")
	global.Object.Namespace = ""
	w.index.Delete(source, "fruit", "foo")
	w.index.Set(source, global)
	w.want(t, "east", "dns=kiwi role: k")
	w.set(func() { w.clusters["east"] = cluster("east") })
	w.want(t, "east", "dns!WorkloadCluster east may not have identities of the namespace fruit by an object without a namespace: add it to spec.identities.namespaces")
}

// events are those of a watch.
type events struct {
	watch.Interface
	mu   sync.Mutex
	got  []string
	last string
}

// A cluster has the tokens of an identity delivered if an object on it refers to that identity, itself or by a binding.
func TestDelivers(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Delivers(cluster("east"), "fruit", "kiwi"); code(err) != http.StatusServiceUnavailable {
		t.Errorf("before anything was read: %v, want 503", err)
	}
	w.fill(t, placed("foo", east, "cloudprovider=by:infra", "dns=kiwi"), placed("bar", []string{"west"}, "dns=kiwi"))
	narrow := cluster("east")
	narrow.Spec.Identities.FromContexts = false
	for name, test := range map[string]struct {
		cluster             *clusters.Cluster
		namespace, identity string
		want                bool
	}{
		"its own":                 {cluster("east"), "fruit", "kiwi", true},
		"by a binding":            {cluster("east"), "fruit", "banana", true},
		"of another object":       {cluster("west"), "fruit", "banana", false},
		"of another namespace":    {cluster("east"), "garden", "kiwi", false},
		"of no object":            {cluster("east"), "fruit", "cherry", false},
		"what it may not have":    {narrow, "fruit", "kiwi", false},
		"a cluster without any":   {cluster("north"), "fruit", "kiwi", false},
		"the binding is no match": {cluster("east"), "fruit", "infra", false},
	} {
		if got, err := w.Delivers(test.cluster, test.namespace, test.identity); err != nil || got != test.want {
			t.Errorf("%s: %t, %v, want %t", name, got, err, test.want)
		}
	}
}

// follow watches as a user, from a version on.
func (w *world) follow(t *testing.T, name, version string) *events {
	t.Helper()
	watching := testkit.Need(w.Watch(as(t, name), &internalversion.ListOptions{ResourceVersion: version}))(t)
	t.Cleanup(watching.Stop)
	e := &events{Interface: watching}
	go func() {
		for event := range watching.ResultChan() {
			e.mu.Lock()
			switch object := event.Object.(type) {
			case *v1alpha1.ContextDelivery:
				e.got, e.last = append(e.got, string(event.Type)+" "+line(object.Spec)), object.ResourceVersion
			case *metav1.Status:
				e.got = append(e.got, fmt.Sprintf("%s %d %s", event.Type, object.Code, object.Message))
			}
			e.mu.Unlock()
		}
		e.mu.Lock()
		e.got = append(e.got, "closed")
		e.mu.Unlock()
	}()
	return e
}

// want waits for these events, and takes them; those of one moment come in any order.
func (e *events) want(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	var last []string
	testkit.Eventually(t, fmt.Sprintf("events %q", want), func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		last = slices.Sorted(slices.Values(e.got))
		if slices.Equal(last, want) {
			e.got = nil
			return true
		}
		return false
	})
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	w.fill(t, placed("foo", east, "dns=kiwi"), placed("bar", []string{"west"}, "dns=banana"))
	seen := w.follow(t, "east", "")
	seen.want(t, "ADDED dns=kiwi role: k")
	w.index.Set(source, placed("foo", []string{"west"}, "dns=kiwi"))
	seen.want(t, "DELETED dns=kiwi role: k")
	w.index.Set(source, placed("foo", east, "dns=kiwi"))
	seen.want(t, "ADDED dns=kiwi role: k")
	w.index.Set(source, placed("foo", east, "dns=kiwi"))
	w.identities.Modify(identity("kiwi", "z"))
	seen.want(t, "MODIFIED dns=kiwi role: z")

	// It goes on from a version that it was given, and from no other.
	seen.mu.Lock()
	version := seen.last
	seen.mu.Unlock()
	w.identities.Modify(identity("kiwi", "x"))
	seen.want(t, "MODIFIED dns=kiwi role: x")
	w.follow(t, "east", version).want(t, "MODIFIED dns=kiwi role: x")
	for version, want := range map[string]int32{"1": 410, "999999999": 410, "18446744073709551615": 410, "18446744073709551616": 400, "-1": 400, "x": 400} {
		if _, err := w.Watch(as(t, "east"), &internalversion.ListOptions{ResourceVersion: version}); code(err) != want {
			t.Errorf("from %s: %v, want %d", version, err, want)
		}
	}

	// A client that wants the present first gets it with a mark at its end, whatever version it names.
	streamed := testkit.Need(w.Watch(as(t, "east"), &internalversion.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}))(t)
	if got := <-streamed.ResultChan(); got.Type != watch.Added {
		t.Errorf("first comes %v", got)
	}
	if got := <-streamed.ResultChan(); got.Type != watch.Bookmark || got.Object.(*v1alpha1.ContextDelivery).Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("then comes %v", got)
	}
	streamed.Stop()
	testkit.Eventually(t, "the watch ends", func() bool { _, open := <-streamed.ResultChan(); return !open })

	// It ends when its user is taken off the cluster, without an event.
	w.set(func() { delete(w.clusters, "east") })
	seen.want(t, "ERROR 410 the WorkloadCluster of the caller has changed: list again", "closed")
}

// A client that does not read holds up no other, and has to begin anew.
func TestSlowWatch(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	slow := testkit.Need(w.Watch(as(t, "east"), &internalversion.ListOptions{}))(t)
	defer slow.Stop()
	for i := range 40000 {
		w.index.Set(source, placed("foo", east, fmt.Sprintf("dns-%d=kiwi", i%2)))
	}
	testkit.Eventually(t, "the watch ends with 410", func() bool {
		event, open := <-slow.ResultChan()
		status, failed := event.Object.(*metav1.Status)
		return open && failed && status.Code == http.StatusGone
	})
}

// created has an object be of a time, and of a uid.
func created(object contexts.Placed, namespace string, at int64, uid types.UID) contexts.Placed {
	object.Object.Namespace, object.Object.UID, object.Created = namespace, uid, time.Unix(at, 0)
	return object
}

// Of two objects with one Secret, the older one keeps it, in whatever order they come and change; the other's writers learn no names of its namespace.
func TestOneSecretOfTwo(t *testing.T) {
	w := newWorld(t)
	const kept, stranger = "dns=banana role: a", "dns!another object, created earlier, has the Secret shoot/dns, too: it is delivered for that object alone"
	old, young := created(placed("old", east, "dns=banana"), "fruit", 1, "z"), created(placed("young", east, "dns=kiwi"), "trees", 2, "a")
	w.fill(t, young)
	w.want(t, "east", "dns=kiwi role: k")
	w.index.Set(source, old)
	w.want(t, "east", stranger+", "+kept)
	w.index.Set(source, young)
	w.want(t, "east", stranger+", "+kept)

	// A delivery with a problem of its own keeps its Secret, too.
	w.identities.Delete(identity("banana", "a"))
	w.want(t, "east", "dns!WorkloadIdentity fruit/banana does not exist, "+stranger)
	w.identities.Add(identity("banana", "a"))
	w.want(t, "east", stranger+", "+kept)

	// One that is made anew is the younger one; of the same time, the uid decides.
	w.index.Set(source, created(placed("old", east, "dns=banana"), "fruit", 3, "z"))
	w.want(t, "east", stranger+", dns=kiwi role: k")
	w.index.Set(source, created(placed("old", east, "dns=banana"), "fruit", 2, "Z"))
	w.want(t, "east", stranger+", "+kept)
	w.index.Set(source, created(placed("old", east), "fruit", 2, "Z"))
	w.want(t, "east", "dns=kiwi role: k")
	w.index.Set(source, old)
	w.want(t, "east", stranger+", "+kept)
	w.index.Delete(source, "trees", "young")
	w.want(t, "east", kept)
}

// A ContextKind that gives ten thousand objects one Secret delivers for the first alone, and costs no more than another.
func TestOneSecretOfMany(t *testing.T) {
	w := newWorld(t)
	w.fill(t)
	const many = 10000
	name := func(i int) string { return fmt.Sprintf("foo-%05d", i) }
	for i := range many {
		w.index.Set(source, placed(name(i), east, "dns=kiwi"))
	}
	list, err := w.List(as(t, "east"), &internalversion.ListOptions{})
	if err != nil || len(list.(*v1alpha1.ContextDeliveryList).Items) != many {
		t.Fatal(err)
	}
	for _, each := range list.(*v1alpha1.ContextDeliveryList).Items {
		if (each.Spec.Problem == "") != (each.Spec.ContextObject.Name == name(0)) || each.Spec.Problem != "" && each.Spec.Config != "" {
			t.Fatalf("delivered is %+v", each.Spec)
		}
	}
	for i := range many - 9 {
		w.index.Delete(source, "fruit", name(i))
	}
	crowd := func(n int, keeper string) string {
		return strings.Join(slices.Repeat([]string{"dns!" + keeper + ", created earlier, has the Secret shoot/dns, too: it is delivered for that object alone"}, n), ", ") + ", dns=kiwi role: k"
	}
	w.want(t, "east", crowd(8, "another object"))
	w.index.Delete(source, "fruit", name(many-9))
	w.want(t, "east", crowd(7, "Shoot fruit/foo-09992"))
	for i := many - 8; i < many-1; i++ {
		w.index.Delete(source, "fruit", name(i))
	}
	w.want(t, "east", "dns=kiwi role: k")
}

func TestTable(t *testing.T) {
	w := newWorld(t)
	w.fill(t, placed("foo", east, "dns=kiwi"), placed("thief", east, "dns=kiwi"))
	list, err := w.List(as(t, "east"), &internalversion.ListOptions{})
	testkit.Must(t, err)
	table, err := w.ConvertToTable(t.Context(), list, nil)
	if err != nil || len(table.Rows) != 2 || len(table.ColumnDefinitions) != len(table.Rows[0].Cells) || table.ResourceVersion == "" {
		t.Fatalf("%+v, %v", table, err)
	}
	if cells := fmt.Sprint(table.Rows[0].Cells...); !strings.Contains(cells, "shoot/dns") || !strings.Contains(cells, "fruit/kiwi") || !strings.Contains(cells, "Shoot fruit/") || !strings.Contains(cells, "for that object alone") {
		t.Error(cells)
	}
}
