package workloadidentities

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/test/testkit"
)

// orchard is an API with the identity ns/banana, as far as a Follower needs it.
func orchard(t *testing.T) *rest.Config {
	const banana = `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentity","metadata":{"namespace":"ns","name":"banana","resourceVersion":"1"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		write := func(s string) { _, _ = w.Write([]byte(s)) }
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "": // it only lists
			w.WriteHeader(http.StatusUnprocessableEntity)
			write(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/ns/workloadidentities"):
			write(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentityList","metadata":{"resourceVersion":"1"},"items":[` + banana + `]}`)
		case strings.HasSuffix(r.URL.Path, "/workloadidentities"):
			write(`{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"WorkloadIdentityList","metadata":{"resourceVersion":"1"},"items":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			write(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"x","kind":"workloadidentities"}}`)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// run runs a Follower until the test ends.
func run(t *testing.T, f *Follower) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Run(ctx) // it has no error
	}()
	t.Cleanup(func() { cancel(); <-done })
	testkit.Eventually(t, "the follower runs", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.run != nil })
}

func (f *follower[T]) follows() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.namespaces)
}

// Without reports of changes, a namespace is dropped once it is unused.
func TestNamespacesThatNobodyAsksAboutAreGivenUp(t *testing.T) {
	f := testkit.Need(New(orchard(t), nil))(t)
	clock := clocktesting.NewFakeClock(time.Now())
	f.clock = clock
	run(t, f)
	testkit.Eventually(t, "the clock is waited for", clock.HasWaiters)
	for _, namespace := range []string{"ns", "gone"} {
		_, _ = f.Get(t.Context(), namespace, "banana")
	}
	clock.Step(idle - time.Minute)
	testkit.Must(t, testkit.Err(f.Get(t.Context(), "ns", "banana")))
	clock.Step(time.Minute)
	testkit.Eventually(t, "a namespace is followed", func() bool { return f.follows() == 1 })
	clock.Step(idle)
	testkit.Eventually(t, "no namespace is followed", func() bool { return f.follows() == 0 })
	if _, err := f.Get(t.Context(), "ns", "banana"); err != nil || f.follows() != 1 {
		t.Errorf("read again: %v, %d followed", err, f.follows())
	}
}
