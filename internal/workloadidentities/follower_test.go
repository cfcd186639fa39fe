package workloadidentities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

// api is an API of identities, as far as the test needs it: lists, watches and single objects.
type api struct {
	mu       sync.Mutex
	objects  map[string]*v1alpha1.WorkloadIdentity // by namespace/name
	noList   bool                                  // lists and watches are forbidden
	requests []string
	watchers []chan metav1.WatchEvent
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	watch := r.URL.Query().Get("watch") != ""
	kind := "get"
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/authentication.gardener.cloud/v1alpha1/namespaces/"), "/")
	if len(parts) == 2 {
		kind = "list"
	}
	if watch {
		kind = "watch"
	}
	a.requests = append(a.requests, kind+" "+strings.Join(parts, "/"))
	noList, object := a.noList, (*v1alpha1.WorkloadIdentity)(nil)
	if len(parts) == 3 {
		object = a.objects[parts[0]+"/"+parts[2]]
	}
	list := v1alpha1.WorkloadIdentityList{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.gardener.cloud/v1alpha1", Kind: "WorkloadIdentityList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, wi := range a.objects {
		if wi.Namespace == parts[0] {
			list.Items = append(list.Items, *wi)
		}
	}
	var events chan metav1.WatchEvent
	if watch && !noList && r.URL.Query().Get("sendInitialEvents") == "" {
		events = make(chan metav1.WatchEvent, 10)
		a.watchers = append(a.watchers, events)
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case kind == "get" && object != nil:
		_ = json.NewEncoder(w).Encode(object)
	case kind == "get":
		status := apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), parts[2]).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		w.WriteHeader(404)
		_ = json.NewEncoder(w).Encode(status)
	case noList:
		w.WriteHeader(403)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	case watch && events == nil:
		// A server that does not stream lists.
		w.WriteHeader(422)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case watch:
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-events:
				_ = json.NewEncoder(w).Encode(event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (a *api) count(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, request := range a.requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// send adds an identity, and sends its event to the watches.
func (a *api) send(t *testing.T, wi *v1alpha1.WorkloadIdentity) {
	t.Helper()
	raw := testkit.Need(json.Marshal(wi))(t)
	event := metav1.WatchEvent{Type: "ADDED"}
	event.Object.Raw = raw
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[wi.Namespace+"/"+wi.Name] = wi
	for _, watcher := range a.watchers {
		watcher <- event
	}
}

func identity(name, version string) *v1alpha1.WorkloadIdentity {
	return &v1alpha1.WorkloadIdentity{
		TypeMeta:   metav1.TypeMeta{APIVersion: "authentication.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
	}
}

// start serves an API, and runs a Follower of it.
func start(t *testing.T, a *api, onChange func(types.NamespacedName)) *workloadidentities.Follower {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	follower := testkit.Need(workloadidentities.New(&rest.Config{Host: server.URL, QPS: -1}, onChange))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = follower.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		server.CloseClientConnections()
	})
	return follower
}

func TestIdentitiesComeFromTheWatch(t *testing.T) {
	a := &api{objects: map[string]*v1alpha1.WorkloadIdentity{"team/banana": identity("banana", "1")}}
	changed := make(chan types.NamespacedName, 10)
	follower := start(t, a, func(name types.NamespacedName) { changed <- name })
	testkit.Eventually(t, "the namespace is followed", func() bool {
		before := a.count("get team")
		wi, err := follower.Get(t.Context(), "team", "banana")
		return err == nil && wi.UID == "uid-banana" && a.count("get team") == before
	})
	asked := a.count("get team")
	for range 100 {
		testkit.Must(t, testkit.Err(follower.Get(t.Context(), "team", "banana")))
	}
	if again := a.count("get team"); again != asked {
		t.Errorf("read by itself %d times, though it is watched", again-asked)
	}
	// An identity that the watch has not shown is read live before NotFound is returned.
	if _, err := follower.Get(t.Context(), "team", "cherry"); !apierrors.IsNotFound(err) || a.count("get team/workloadidentities/cherry") != 1 {
		t.Errorf("an identity that is not there: %v, read %d times", err, a.count("get team/workloadidentities/cherry"))
	}
	testkit.Eventually(t, "the new one is shown", func() bool {
		a.send(t, identity("cherry", "2"))
		select {
		case name := <-changed:
			return name.Name == "cherry"
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	if wi, err := follower.Get(t.Context(), "team", "cherry"); err != nil || wi.UID != "uid-cherry" {
		t.Errorf("the new identity: %v, %v", wi, err)
	}
}

// With the right to read single identities only, they are read one by one.
func TestWithoutTheRightToWatch(t *testing.T) {
	a := &api{noList: true, objects: map[string]*v1alpha1.WorkloadIdentity{"team/banana": identity("banana", "1")}}
	follower := start(t, a, nil)
	for range 3 {
		if wi, err := follower.Get(t.Context(), "team", "banana"); err != nil || wi.UID != "uid-banana" {
			t.Fatalf("got %v, %v", wi, err)
		}
	}
	if n := a.count("get team"); n != 3 {
		t.Errorf("read by itself %d times, want each time", n)
	}
}

func TestNamespacesAreGivenUp(t *testing.T) {
	a := &api{objects: map[string]*v1alpha1.WorkloadIdentity{"team/banana": identity("banana", "1")}}
	follower := start(t, a, nil)
	testkit.Eventually(t, "the namespace is followed", func() bool {
		_, err := follower.Get(t.Context(), "team", "banana")
		return err == nil && a.count("watch team") > 0
	})
	follower.Retain(func(string) bool { return false })
	lists := a.count("list team")
	testkit.Must(t, testkit.Err(follower.Get(t.Context(), "team", "banana")))
	testkit.Eventually(t, "it is followed anew", func() bool { return a.count("list team") > lists })
}
