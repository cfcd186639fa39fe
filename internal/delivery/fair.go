package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// slowLook is after how long an object counts as slow.
	slowLook = 2 * time.Second
	// longestLook bounds how long one object can take: a webhook may take 30 seconds.
	longestLook = 40 * time.Second
)

// fair keeps one namespace from taking all workers of a controller, for instance because a webhook for its objects hangs: all
// namespaces whose last object was slow share some of the workers, and the others stay free.
type fair struct {
	reconcile.Reconciler
	clock clock.PassiveClock
	// most is how many workers slow namespaces share.
	most int
	// add queues an object.
	add func(key types.NamespacedName, after time.Duration)

	mu     sync.Mutex
	slow   map[string]struct{}    // namespaces
	busy   int                    // workers with objects of slow namespaces
	parked []types.NamespacedName // in order, each once
}

func newFair(inner reconcile.Reconciler, clock clock.PassiveClock, concurrency int, add func(types.NamespacedName, time.Duration)) *fair {
	return &fair{Reconciler: inner, clock: clock, most: max(1, concurrency/2), add: add, slow: map[string]struct{}{}}
}

// Reconcile implements reconcile.Reconciler.
func (f *fair) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	slow, ok := f.enter(request.NamespacedName)
	if !ok {
		return reconcile.Result{}, nil
	}
	began := f.clock.Now()
	defer func() { f.leave(request.Namespace, slow, f.clock.Since(began)) }()
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	return f.Reconciler.Reconcile(ctx, request)
}

// enter reports whether an object is of a slow namespace, and whether it has a worker. If not, it is queued when it may have one.
func (f *fair) enter(key types.NamespacedName) (slow, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, slow = f.slow[key.Namespace]; !slow {
		return false, true
	}
	if f.busy >= f.most {
		if !slices.Contains(f.parked, key) {
			f.parked = append(f.parked, key)
		}
		return true, false
	}
	f.busy++
	return true, true
}

func (f *fair) leave(namespace string, slow bool, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if took >= slowLook {
		f.slow[namespace] = struct{}{}
	} else {
		delete(f.slow, namespace)
	}
	if slow {
		f.busy--
	}
	if f.busy < f.most && len(f.parked) > 0 {
		f.add(f.parked[0], 0)
		f.parked = f.parked[1:]
	}
}
