package delivery

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the queue of a controller, for other components that find that an object must be reconciled.
type queue struct {
	mu    sync.Mutex
	inner workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// start is called by the controller when its queue exists.
func (q *queue) start(_ context.Context, inner workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inner = inner
	return nil
}

// add makes the controller look at an object after a while. Before it starts there is nothing to do: it begins with all objects.
func (q *queue) add(key types.NamespacedName, after time.Duration) {
	q.mu.Lock()
	inner := q.inner
	q.mu.Unlock()
	if inner != nil {
		inner.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}

// done reports whether the controller has started, and has nothing to look at now.
func (q *queue) done() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inner != nil && q.inner.Len() == 0
}

// longestSleep bounds how long an object is not looked at: timers stand still while a machine is suspended, and clocks are put
// right.
const longestSleep = 10 * time.Minute

// wakeful looks again before a long wait is over.
type wakeful struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (w wakeful) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := w.Reconciler.Reconcile(ctx, request)
	result.RequeueAfter = min(result.RequeueAfter, longestSleep)
	return result, err
}
