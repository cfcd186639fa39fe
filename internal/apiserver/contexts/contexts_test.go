package contexts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contexts"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/test/testkit"
)

const group, version = "core.gardener.cloud", "v1beta1"

// storage has ContextKinds.
type storage struct {
	list   v1alpha1.ContextKindList
	events *watch.FakeWatcher
}

func (s *storage) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return s.list.DeepCopy(), nil
}

func (s *storage) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

func shoots(claim string) *v1alpha1.ContextKind {
	return &v1alpha1.ContextKind{
		ObjectMeta: metav1.ObjectMeta{Name: "shoots." + group, ResourceVersion: "1"},
		Spec: v1alpha1.ContextKindSpec{
			Object: v1alpha1.ContextResource{Group: group, Version: version, Resource: "shoots", Kind: "Shoot"}, Claim: claim,
			Clusters:   "[object.spec.seedName]",
			References: []v1alpha1.ContextReference{{Name: "dns", WorkloadIdentities: "object.spec.identities"}},
			Related:    []v1alpha1.RelatedObject{{Claim: "project", Resource: "projects", Key: "candidate.spec.namespace", Of: "object.metadata.namespace"}},
		},
	}
}

func content(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind, "spec": spec}}
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetUID(types.UID("uid-of-" + name))
	return object
}

func shoot(namespace, name string, identities ...any) *unstructured.Unstructured {
	return content("Shoot", namespace, name, map[string]any{"seedName": "east", "identities": identities})
}

func project(name, namespace string) *unstructured.Unstructured {
	return content("Project", "", name, map[string]any{"namespace": namespace})
}

// cluster serves objects, and counts its lists by resource.
func cluster(objects ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range map[string]string{"shoots": "ShootList", "projects": "ProjectList", "seeds": "SeedList"} {
		kinds[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}] = kind
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

func lists(client *fake.FakeDynamicClient, resource string) int {
	return count(client, "list", resource)
}

// count counts requests. A watch that is counted shows what happens from now on; one of the fake shows no deletion from before it.
func count(client *fake.FakeDynamicClient, verb, resource string) int {
	n := 0
	for _, action := range client.Actions() {
		if action.Matches(verb, resource) {
			n++
		}
	}
	return n
}

func follow(t *testing.T, client dynamic.Interface, kinds ...*v1alpha1.ContextKind) (*contexts.Follower, *storage) {
	t.Helper()
	s := &storage{events: watch.NewFake()}
	for _, each := range kinds {
		s.list.Items = append(s.list.Items, *each)
	}
	f := contexts.New(s, client, &deliveries{}, clock.RealClock{})
	if _, err := f.Kind(group+"/"+version, "Shoot"); code(err) != http.StatusServiceUnavailable {
		t.Errorf("before anything is read: %v, want 503", err)
	}
	go f.Run(t.Context())
	return f, s
}

func code(err error) int32 {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// claims are those of a Shoot, or why it has no claims.
func claims(f *contexts.Follower, namespace, name string) ([]issuer.Object, error) {
	kind, err := f.Kind(group+"/"+version, "Shoot")
	if err != nil {
		return nil, err
	}
	if kind == nil {
		return nil, errors.New("not a kind of contexts")
	}
	object, err := kind.Find(namespace, name)
	if err != nil {
		return nil, err
	}
	return object.Claims()
}

func want(f *contexts.Follower, namespace, name string, want ...issuer.Object) func() error {
	return func() error {
		got, err := claims(f, namespace, name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			return fmt.Errorf("%w %s", err, diff)
		}
		return nil
	}
}

func wantCode(f *contexts.Follower, namespace, name string, wanted int32, words string) func() error {
	return func() error {
		got, err := claims(f, namespace, name)
		if code(err) != wanted || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("%v, %w; want %d with %q", got, err, wanted, words)
		}
		return nil
	}
}

// eventually waits until a check finds nothing wrong.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	t.Cleanup(func() {
		if last != nil {
			t.Log(last)
		}
	})
	testkit.Eventually(t, "the check finds nothing wrong", func() bool {
		last = check()
		return last == nil
	})
}

func TestObjects(t *testing.T) {
	client := cluster(shoot("fruit", "banana", "dns"), shoot("stray", "kiwi"), project("orchard", "fruit"))
	f, s := follow(t, client, shoots("shoot"))
	banana := issuer.Object{Claim: "shoot", Namespace: "fruit", Name: "banana", UID: "uid-of-banana"}
	orchard := issuer.Object{Claim: "project", Name: "orchard", UID: "uid-of-orchard"}
	eventually(t, want(f, "fruit", "banana", banana, orchard))

	kind, err := f.Kind(group+"/"+version, "Shoot")
	testkit.Must(t, err)
	object, err := kind.Find("fruit", "banana")
	if err != nil || object.UID != "uid-of-banana" {
		t.Fatalf("%+v, %v", object, err)
	}
	testkit.Expect(t, object.Uses(types.NamespacedName{Namespace: "fruit", Name: "dns"}))
	if err := object.Uses(types.NamespacedName{Namespace: "other", Name: "dns"}); err == nil || !strings.Contains(err.Error(), "does not refer to WorkloadIdentity other/dns") {
		t.Errorf("another identity: %v", err)
	}
	if !object.On("east") || object.On("west") {
		t.Errorf("on east: %v, on west: %v", object.On("east"), object.On("west"))
	}

	for _, check := range []func() error{
		wantCode(f, "fruit", "apple", http.StatusNotFound, "apple"),
		wantCode(f, "", "banana", http.StatusNotFound, "banana"),
		wantCode(f, "stray", "kiwi", http.StatusConflict, `the claim project of ContextKind shoots.core.gardener.cloud is not known: no projects have the key "stray"`),
	} {
		testkit.Expect(t, check())
	}
	if other, err := f.Kind(group+"/v1", "Shoot"); other != nil || err != nil {
		t.Errorf("another version: %v, %v", other, err)
	}

	// Changes are followed, and no kind is listed again.
	later := project("garden", "fruit")
	later.SetCreationTimestamp(metav1.Now())
	write(t, client, "projects", "", later)
	write(t, client, "projects", "", project("seen", "stray"))
	eventually(t, want(f, "stray", "kiwi", issuer.Object{Claim: "shoot", Namespace: "stray", Name: "kiwi", UID: "uid-of-kiwi"}, issuer.Object{Claim: "project", Name: "seen", UID: "uid-of-seen"}))
	testkit.Expect(t, want(f, "fruit", "banana", banana, orchard)(), "with a project that was created later")
	testkit.Must(t, client.Resource(resource("projects")).Delete(t.Context(), "orchard", metav1.DeleteOptions{}))
	garden := issuer.Object{Claim: "project", Name: "garden", UID: "uid-of-garden"}
	eventually(t, want(f, "fruit", "banana", banana, garden))
	labeled := shoots("shoot")
	labeled.Labels = map[string]string{"a": "b"}
	s.events.Modify(labeled)
	seeds := shoots("other")
	seeds.Name, seeds.Spec.Object.Resource, seeds.Spec.Object.Kind = "seeds."+group, "seeds", "Seed"
	s.events.Add(seeds)
	eventually(t, func() error {
		if got := f.Supported(); len(got) != 2 {
			return fmt.Errorf("supported are %v", got)
		}
		return nil
	})
	testkit.Expect(t, want(f, "fruit", "banana", banana, garden)(), "after another ContextKind came")
	if lists(client, "shoots") > 1 || lists(client, "projects") > 1 {
		t.Errorf("shoots were listed %d times, projects %d times", lists(client, "shoots"), lists(client, "projects"))
	}
	s.events.Delete(labeled)
	eventually(t, func() error {
		if kind, err := f.Kind(group+"/"+version, "Shoot"); kind != nil || err != nil {
			return fmt.Errorf("after its ContextKind was deleted: %v, %w", kind, err)
		}
		return nil
	})
}

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

func write(t *testing.T, client dynamic.Interface, name, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	testkit.Must(t, testkit.Err(client.Resource(resource(name)).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})))
}

// While the API does not answer, nothing is known: also what was read before.
func TestObjectsInAnOutage(t *testing.T) {
	client := cluster(shoot("fruit", "banana", "dns"), project("orchard", "fruit"))
	var away atomic.Bool
	watching := make(chan *watch.FakeWatcher, 100)
	away.Store(true)
	client.PrependReactor("list", "shoots", func(clienttesting.Action) (bool, runtime.Object, error) {
		if away.Load() {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "shoots"}, "", errors.New("no role"))
		}
		return false, nil, nil
	})
	client.PrependWatchReactor("shoots", func(clienttesting.Action) (bool, watch.Interface, error) {
		if away.Load() {
			return true, nil, errors.New("connection refused")
		}
		w := watch.NewFake()
		watching <- w
		return true, w, nil
	})
	f, _ := follow(t, client, shoots("shoot"))
	eventually(t, wantCode(f, "fruit", "banana", http.StatusServiceUnavailable, "shoots.core.gardener.cloud cannot be read"))
	away.Store(false)
	eventually(t, func() error { _, err := claims(f, "fruit", "banana"); return err })
	watched := <-watching
	away.Store(true)
	watched.Stop()
	eventually(t, wantCode(f, "fruit", "banana", http.StatusServiceUnavailable, "cannot be read"))
}

// After an outage, what was read before it counts no more while a list of many pages is read.
func TestObjectsAfterAnOutage(t *testing.T) {
	client := cluster(shoot("fruit", "banana", "dns"), project("orchard", "fruit"))
	const (
		up = iota
		away
		paging
	)
	var state atomic.Int32
	watching := make(chan *watch.FakeWatcher, 100)
	client.PrependReactor("list", "shoots", func(clienttesting.Action) (bool, runtime.Object, error) {
		switch state.Load() {
		case away:
			return true, nil, errors.New("connection refused")
		case paging:
			list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "ShootList"}}
			list.SetContinue("more")
			return true, list, nil
		}
		return false, nil, nil
	})
	client.PrependWatchReactor("shoots", func(clienttesting.Action) (bool, watch.Interface, error) {
		if state.Load() == away {
			return true, nil, errors.New("too old")
		}
		w := watch.NewFake()
		watching <- w
		return true, w, nil
	})
	f, _ := follow(t, client, shoots("shoot"))
	eventually(t, func() error { _, err := claims(f, "fruit", "banana"); return err })
	watched := <-watching
	state.Store(away)
	watched.Stop()
	eventually(t, wantCode(f, "fruit", "banana", http.StatusServiceUnavailable, "cannot be read"))
	before := lists(client, "shoots")
	state.Store(paging)
	eventually(t, func() error {
		if got := lists(client, "shoots"); got < before+2 {
			return fmt.Errorf("%d pages were requested", got-before)
		}
		return nil
	})
	testkit.Expect(t, wantCode(f, "fruit", "banana", http.StatusServiceUnavailable, "cannot be read")(), "while there are more pages")
	state.Store(up)
	eventually(t, func() error { _, err := claims(f, "fruit", "banana"); return err })
}

// Two ContextKinds that were written at the same moment with one claim: neither is used.
func TestDispute(t *testing.T) {
	seeds := shoots("shoot")
	seeds.Name, seeds.Spec.Object.Resource, seeds.Spec.Object.Kind = "seeds."+group, "seeds", "Seed"
	f, s := follow(t, cluster(shoot("fruit", "banana"), project("orchard", "fruit")), shoots("shoot"), seeds)
	eventually(t, wantCode(f, "fruit", "banana", http.StatusConflict, "conflicts with ContextKind seeds.core.gardener.cloud: the claim shoot"))
	s.events.Delete(seeds)
	eventually(t, func() error { _, err := claims(f, "fruit", "banana"); return err })
}

// A resource whose objects are of another kind than the ContextKind has is a mistake of its writer.
func TestAnotherKind(t *testing.T) {
	client := cluster()
	write(t, client, "shoots", "fruit", content("Shot", "fruit", "banana", nil))
	f, _ := follow(t, client, shoots("shoot"))
	eventually(t, wantCode(f, "fruit", "banana", http.StatusConflict, "it is of kind Shot, and not Shoot"))
}

func seeds(change func(*v1alpha1.ContextKindSpec)) *v1alpha1.ContextKind {
	kind := shoots("seed")
	kind.Name, kind.Spec.Clusters, kind.Spec.Related = "seeds."+group, "", nil
	kind.Spec.Object.Resource, kind.Spec.Object.Kind, kind.Spec.Object.Scope = "seeds", "Seed", v1alpha1.ScopeCluster
	change(&kind.Spec)
	return kind
}

// An object that is claimed as the cluster is the cluster of its name, and adds no claim of its own.
func TestSeeds(t *testing.T) {
	same := func(*v1alpha1.ContextKindSpec) {}
	client := cluster(content("Seed", "", "east", map[string]any{"identities": []any{"garden/backup"}}))
	f, s := follow(t, client, seeds(same))
	if _, err := f.ClusterUID("east"); code(err) != http.StatusServiceUnavailable {
		t.Errorf("before the Seeds were read: %v, want 503", err)
	}
	uid := func(name string, want types.UID) func() error {
		return func() error {
			if got, err := f.ClusterUID(name); got != want || err != nil {
				return fmt.Errorf("the uid of %s is %q, want %q: %w", name, got, want, err)
			}
			return nil
		}
	}
	eventually(t, uid("east", "uid-of-east"))
	testkit.Expect(t, uid("west", "")(), "a cluster that is not a Seed")
	kind := testkit.Need(f.Kind(group+"/"+version, "Seed"))(t)
	seed := testkit.Need(kind.Find("", "east"))(t)
	if got, err := seed.Claims(); len(got) != 0 || err != nil {
		t.Errorf("claims %v, %v", got, err)
	}
	if !seed.On("east") || seed.On("west") {
		t.Errorf("on east: %v, on west: %v", seed.On("east"), seed.On("west"))
	}
	testkit.Expect(t, seed.Uses(types.NamespacedName{Namespace: "garden", Name: "backup"}))
	s.events.Delete(seeds(same))
	eventually(t, uid("east", ""))
}

// An object uses what a related one lends, as long as that is there.
func TestLending(t *testing.T) {
	entries := shoots("entry")
	entries.Spec.References = nil
	entries.Spec.Related = []v1alpha1.RelatedObject{{Claim: "bucket", Resource: "seeds", Key: "candidate.metadata.name", Of: "object.spec.bucket", Lends: true}}
	buckets := seeds(func(s *v1alpha1.ContextKindSpec) { s.Claim = "bucket" })
	client := cluster(
		content("Seed", "", "east", map[string]any{"identities": []any{"garden/backup"}}),
		content("Shoot", "fruit", "entry", map[string]any{"seedName": "east", "bucket": "east"}),
		content("Shoot", "fruit", "stray", map[string]any{"seedName": "east", "bucket": "west"}),
	)
	f, s := follow(t, client, entries, buckets)
	uses := func(name, identity string) error {
		kind, err := f.Kind(group+"/"+version, "Shoot")
		if err != nil {
			return err
		}
		found, err := kind.Find("fruit", name)
		if err != nil {
			return err
		}
		return found.Uses(types.NamespacedName{Namespace: "garden", Name: identity})
	}
	eventually(t, func() error { return uses("entry", "backup") })
	if err := uses("entry", "other"); err == nil || !strings.Contains(err.Error(), "does not refer to WorkloadIdentity garden/other") {
		t.Errorf("an identity that is not lent: %v", err)
	}
	if err := uses("stray", "backup"); err == nil || !strings.Contains(err.Error(), `no seeds have the key "west"`) {
		t.Errorf("of a bucket that is missing: %v", err)
	}
	s.events.Delete(buckets)
	eventually(t, func() error {
		if err := uses("entry", "backup"); err == nil || !strings.Contains(err.Error(), "does not refer to") {
			return fmt.Errorf("without the ContextKind of buckets: %w", err)
		}
		return nil
	})
}

// A deleted object that refers to a binding is known for a while: what was reserved for its creation is free.
func TestEndedObjects(t *testing.T) {
	bound := shoots("shoot")
	bound.Spec.References = append(bound.Spec.References, v1alpha1.ContextReference{Name: "infrastructure", CredentialsBindings: "[object.metadata.name]"})
	client := cluster(shoot("fruit", "banana", "dns"), project("orchard", "fruit"))
	f, _ := follow(t, client, bound)
	eventually(t, func() error {
		if n := count(client, "watch", "shoots"); n < 1 || !f.HasSynced() {
			return errors.New("not followed yet")
		}
		return nil
	})
	if f.Ended("uid-of-banana") {
		t.Error("it has ended before its deletion")
	}
	testkit.Must(t, client.Resource(resource("shoots")).Namespace("fruit").Delete(t.Context(), "banana", metav1.DeleteOptions{}))
	eventually(t, func() error {
		if !f.Ended("uid-of-banana") {
			return errors.New("it has not ended")
		}
		return nil
	})
	if f.Ended("uid-of-another") {
		t.Error("one that was never seen has ended")
	}
}
