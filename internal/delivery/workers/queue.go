package workers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the queue of a controller, for other components that find that an object must be reconciled.
type Queue struct {
	mu    sync.Mutex
	inner workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start is called by the controller when its queue exists.
func (q *Queue) Start(_ context.Context, inner workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inner = inner
	return nil
}

// Add makes the controller look at an object after a while. Before it starts there is nothing to do: it begins with all objects.
func (q *Queue) Add(key types.NamespacedName, after time.Duration) {
	q.mu.Lock()
	inner := q.inner
	q.mu.Unlock()
	if inner != nil {
		inner.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}

// Done reports whether the controller has started, and has nothing to look at now.
func (q *Queue) Done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inner != nil && q.inner.Len() == 0
}
