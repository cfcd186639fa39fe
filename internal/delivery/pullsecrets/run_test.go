package pullsecrets

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/internal/delivery/workers"
	"github.com/credence-id/credence/test/testkit"
)

// A namespace whose Secrets all hang leaves a worker to others.
func TestNamespaceLeavesAWorker(t *testing.T) {
	w := newWorld(t)
	began, release := make(chan string, 2*concurrency), make(chan struct{})
	needs := w.Needs
	needs.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(w.client.Scheme()).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			began <- key.Namespace
			if key.Namespace == "hangs" {
				<-release
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	reconciler := shared(needs, &workers.Queue{})
	look := func(namespace, name string) {
		testkit.Expect(t, testkit.Err(reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})))
	}
	var group sync.WaitGroup
	for i := range concurrency - 1 {
		group.Go(func() { look("hangs", fmt.Sprint(i)) })
		<-began
	}
	ended := make(chan struct{})
	group.Go(func() {
		look("hangs", "last")
		close(ended)
	})
	select {
	case <-ended:
	case <-began:
		t.Error("one namespace has all workers")
	}
	look("quick", "s")
	if got := <-began; got != "quick" {
		t.Errorf("a Secret of %s was looked at", got)
	}
	close(release)
	group.Wait()
}
