package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
	"github.com/credence-id/credence/internal/apiserver/storage/transfer"
	"github.com/credence-id/credence/test/testkit"
)

type (
	object = v1alpha1.WorkloadCluster
	list   = v1alpha1.WorkloadClusterList
)

const prefix = "/identity.credence.dev/workloadclusters/"

// store is the storage of WorkloadClusters in a host.
func store(t *testing.T, client rest.Interface) storage.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	testkit.Must(t, v1alpha1.AddToScheme(scheme))
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &object{}, &list{})
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	config := storagebackend.NewDefaultConfig("", codec).ForResource(v1alpha1.Resource("workloadclusters"))
	made, destroy, err := cluster.New(client, cluster.NewMAC([]byte("a key of these tests"), false), config, func() runtime.Object { return &object{} }, func() runtime.Object { return &list{} }, prefix)
	testkit.Must(t, err)
	t.Cleanup(destroy)
	return made
}

func create(t *testing.T, s storage.Interface, name string) *object {
	t.Helper()
	var made object
	testkit.Must(t, s.Create(t.Context(), prefix+name, &object{ObjectMeta: metav1.ObjectMeta{Name: name}}, &made, 0))
	return &made
}

// update gives a stored object a user.
func update(ctx context.Context, s storage.Interface, name, user string) (*object, error) {
	var changed object
	err := s.GuaranteedUpdate(ctx, prefix+name, &changed, false, nil, func(old runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		next := old.(*object)
		next.Spec.Users = []string{user}
		return next, nil, nil
	}, nil)
	return &changed, err
}

func remove(ctx context.Context, s storage.Interface, name string, preconditions *storage.Preconditions) error {
	return s.Delete(ctx, prefix+name, &object{}, preconditions, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
}

func names(l list) (all []string) {
	for _, item := range l.Items {
		all = append(all, item.Name)
	}
	return all
}

func TestObjectsAreStoredAsRecords(t *testing.T) {
	h, client := newHost(t)
	s := store(t, client)
	ctx := t.Context()
	made := create(t, s, "east")
	h.do(func() {
		stored := h.states[h.latest()]["identity.credence.dev0-workloadclusters0-east"]
		if stored.Key != prefix+"east" || stored.Metadata.Labels["storage.credence.dev/resource"] != "workloadclusters.identity.credence.dev" {
			t.Errorf("stored %+v", stored)
		}
		if bytes.Contains(stored.Value, []byte("resourceVersion")) || !bytes.Contains(stored.Value, []byte(`"east"`)) {
			t.Errorf("value %s, want the object without a resource version", stored.Value)
		}
	})
	if err := s.Create(ctx, prefix+"east", made, &object{}, 0); err == nil {
		t.Error("an object with a resource version is created")
	}
	if err := s.Create(ctx, prefix+"east", &object{}, &object{}, 0); !storage.IsExist(err) {
		t.Errorf("a second one of the name: %v", err)
	}
	changed, err := update(ctx, s, "east", "agent")
	if err != nil || changed.ResourceVersion == made.ResourceVersion {
		t.Fatalf("%+v, %v", changed, err)
	}
	var got object
	if err := s.Get(ctx, prefix+"east", storage.GetOptions{}, &got); err != nil || got.ResourceVersion != changed.ResourceVersion || got.Spec.Users[0] != "agent" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Get(ctx, prefix+"west", storage.GetOptions{}, &got); !storage.IsNotFound(err) {
		t.Errorf("an object that is not there: %v", err)
	}
	if err := remove(ctx, s, "east", storage.NewUIDPreconditions("another")); !storage.IsInvalidObj(err) {
		t.Errorf("a deletion of another uid: %v", err)
	}
	testkit.Must(t, remove(ctx, s, "east", nil))
	if err := remove(ctx, s, "east", nil); !storage.IsNotFound(err) {
		t.Errorf("a second deletion: %v", err)
	}
	if _, err := update(ctx, s, "east", "agent"); !storage.IsNotFound(err) {
		t.Errorf("a change of a deleted object: %v", err)
	}
}

// A change that another replica makes between the read and the write is read, and not lost.
func TestConcurrentChangesAreNotLost(t *testing.T) {
	_, client := newHost(t)
	one, two := store(t, client), store(t, client)
	create(t, one, "east")
	tries := 0
	var got object
	err := one.GuaranteedUpdate(t.Context(), prefix+"east", &got, false, nil, func(old runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if tries++; tries == 1 {
			if _, err := update(t.Context(), two, "east", "two"); err != nil {
				return nil, nil, err
			}
		}
		next := old.(*object)
		next.Spec.Users = append(next.Spec.Users, "one")
		return next, nil, nil
	}, nil)
	if err != nil || tries != 2 || !slices.Equal(got.Spec.Users, []string{"two", "one"}) {
		t.Errorf("%d tries, users %q, %v", tries, got.Spec.Users, err)
	}
}

// The pages of a list are of one state, and count what remains.
func TestListsArePagesOfOneState(t *testing.T) {
	h, client := newHost(t)
	s := store(t, client)
	var want []string
	for i := range 5 {
		name := fmt.Sprintf("c-%d", i)
		create(t, s, name)
		want = append(want, name)
	}
	// Records of other resources are before and behind.
	h.put("identity.credence.dev0-contextkinds0-a", "/identity.credence.dev/contextkinds/a")
	h.put("identity.credence.dev0-workloadclusters1", "/identity.credence.dev/workloadclusters1")
	h.put("z0-z0-z", "/z/z/z")
	read := func(options storage.ListOptions) list {
		t.Helper()
		var page list
		testkit.Must(t, s.GetList(t.Context(), prefix, options, &page))
		return page
	}
	if all := read(storage.ListOptions{Recursive: true, Predicate: storage.Everything}); !slices.Equal(names(all), want) {
		t.Errorf("all are %q, want %q", names(all), want)
	}
	predicate := storage.Everything
	predicate.Limit = 2
	var got []string
	for remaining := int64(3); ; remaining -= 2 {
		page := read(storage.ListOptions{Recursive: true, Predicate: predicate})
		got = append(got, names(page)...)
		if page.Continue == "" {
			break
		}
		if page.RemainingItemCount == nil || *page.RemainingItemCount != remaining {
			t.Errorf("behind %q remain %v, want %d", got, page.RemainingItemCount, remaining)
		}
		predicate.Continue = page.Continue
		if len(got) == 2 {
			testkit.Must(t, remove(t.Context(), s, "c-4", nil))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages with %q, want %q", got, want)
	}
	predicate.Continue = ""
	page := read(storage.ListOptions{Recursive: true, Predicate: predicate})
	h.do(func() { h.set("z0-z0-z", record{}); h.compacted = h.latest() })
	predicate.Continue = page.Continue
	err := s.GetList(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: predicate}, &list{})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a page of a state that is gone: %v", err)
	}
	if revision, err := s.GetCurrentResourceVersion(t.Context()); err != nil || int(revision) != h.latest() {
		t.Errorf("resource version %d, %v, want %d", revision, err, h.latest())
	}
	if stats, err := s.Stats(t.Context()); err != nil || stats.ObjectCount != 4 {
		t.Errorf("%d objects are counted, %v, want 4", stats.ObjectCount, err)
	}
}

// A watch goes on when the host ends its own, without an event twice or missing. It ends with an error when the host has forgotten events.
func TestWatchesGoOnAfterTheHostEndsThem(t *testing.T) {
	h, client := newHost(t)
	s := store(t, client)
	first := create(t, s, "first")
	watching, err := s.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: first.ResourceVersion, Recursive: true, Predicate: storage.Everything})
	testkit.Must(t, err)
	defer watching.Stop()
	next := func(want watch.EventType, name string) {
		t.Helper()
		got, ok := <-watching.ResultChan()
		if !ok || got.Type != want || name != "" && got.Object.(*object).Name != name {
			t.Fatalf("%s %+v, want %s of %s", got.Type, got.Object, want, name)
		}
	}
	create(t, s, "second")
	next(watch.Added, "second")
	h.hangUp()
	create(t, s, "third")
	next(watch.Added, "third")
	testkit.Must(t, testkit.Err(update(t.Context(), s, "first", "agent")))
	next(watch.Modified, "first")
	testkit.Must(t, remove(t.Context(), s, "second", nil))
	next(watch.Deleted, "second")
	h.do(func() { h.set("z0-z0-z", record{Key: "/z/z/z"}); h.compacted = h.latest(); h.hangups = h.watches })
	next(watch.Error, "")

	// From any state on, a watch begins with what is stored.
	if watching, err = s.Watch(t.Context(), prefix, storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything}); err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	next(watch.Added, "first")
	next(watch.Added, "third")
}

// A host that does not serve records is an outage: objects are not taken for deleted. A record of another key is an error, too.
func TestHostThatServesNoRecordsIsAnOutage(t *testing.T) {
	h, client := newHost(t)
	s := store(t, client)
	create(t, s, "east")
	h.do(func() { h.served = false })
	if err := s.Get(t.Context(), prefix+"east", storage.GetOptions{}, &object{}); err == nil || storage.IsNotFound(err) {
		t.Errorf("read: %v", err)
	}
	if err := remove(t.Context(), s, "east", nil); err == nil || storage.IsNotFound(err) {
		t.Errorf("deleted: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cluster.Await(ctx, client); err == nil {
		t.Error("records are served")
	}
	h.do(func() { h.served = true })
	testkit.Expect(t, cluster.Await(t.Context(), client))
	h.do(func() {
		h.set("identity.credence.dev0-workloadclusters0-east", record{Key: prefix + "west", Value: []byte("{}")})
	})
	if err := s.Get(t.Context(), prefix+"east", storage.GetOptions{}, &object{}); err == nil || !strings.Contains(err.Error(), "was not written by this server") {
		t.Errorf("a record of another key: %v", err)
	}
}

func TestAllRecordsAreCopied(t *testing.T) {
	_, client := newHost(t)
	all := cluster.NewAll(client, cluster.NewMAC([]byte("a key of these tests"), false))
	for _, key := range []string{"/g/r/b", "/g/r/a", "/g/s/ns/c"} {
		testkit.Must(t, all.Create(t.Context(), key, []byte("{}")))
	}
	if err := all.Create(t.Context(), "/g/r/a", []byte("{}")); !errors.As(err, &transfer.Refusal{}) {
		t.Errorf("a key that is there: %v, want a refusal", err)
	}
	for _, key := range []string{"/g/r", "g/r/a", "//r/a"} {
		if err := all.Create(t.Context(), key, nil); err == nil || !strings.Contains(err.Error(), "does not begin with /GROUP/RESOURCE/") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for range 2 {
		testkit.Expect(t, all.Remove(t.Context(), "/g/r/b"))
	}
	var keys []string
	stored, err := all.All(t.Context())
	for _, kv := range stored {
		keys = append(keys, string(kv.Key))
	}
	if err != nil || !slices.Equal(keys, []string{"/g/r/a", "/g/s/ns/c"}) {
		t.Errorf("%q, %v", keys, err)
	}
}
