// Package workers shares the workers of a controller among the namespaces of its objects. In goes a reconciler; out comes one that leaves an object for
// later where its namespace has workers enough, and queues it again.
package workers

import (
	"context"
	"maps"
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
	// LongestLook bounds how long one object can take: a webhook may take 30 seconds.
	LongestLook = 40 * time.Second
	// slowFor is how long a namespace counts as slow after an object of it was: others of it may be quick meanwhile.
	slowFor = 2 * LongestLook
)

// fair keeps one namespace from taking all workers of a controller, for instance because a webhook for its objects hangs: no namespace
// gets the last worker, all namespaces with a recent slow object share some of the workers, and the others stay free.
type fair struct {
	reconcile.Reconciler
	clock clock.PassiveClock
	// most is how many workers slow namespaces share, each how many any namespace has.
	most, each int
	// add queues an object.
	add func(key types.NamespacedName, after time.Duration)

	mu      sync.Mutex
	slow    map[string]time.Time   // namespaces, and until when
	running map[string]int         // workers, by namespace
	parked  []types.NamespacedName // in order, each once
}

// Fair keeps one namespace from taking all workers of a controller, of which there are concurrency. add queues an object of the controller.
func Fair(inner reconcile.Reconciler, clock clock.PassiveClock, concurrency int, add func(types.NamespacedName, time.Duration)) reconcile.Reconciler {
	return &fair{Reconciler: inner, clock: clock, most: max(1, concurrency/2), each: max(1, concurrency-1), add: add, slow: map[string]time.Time{}, running: map[string]int{}}
}

// Reconcile implements reconcile.Reconciler.
func (f *fair) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !f.enter(request.NamespacedName) {
		return reconcile.Result{}, nil
	}
	began := f.clock.Now()
	defer func() { f.leave(request.Namespace, f.clock.Since(began)) }()
	ctx, cancel := context.WithTimeout(ctx, LongestLook)
	defer cancel()
	return f.Reconciler.Reconcile(ctx, request)
}

// enter reports whether an object has a worker. If not, it is queued when it may have one.
func (f *fair) enter(key types.NamespacedName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	if !f.free(key.Namespace, f.running) {
		if !slices.Contains(f.parked, key) {
			f.parked = append(f.parked, key)
		}
		return false
	}
	f.running[key.Namespace]++
	return true
}

// leave ends a look, and queues the objects that may have workers now.
func (f *fair) leave(namespace string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if took >= slowLook {
		f.slow[namespace] = f.clock.Now().Add(slowFor)
	}
	if f.running[namespace]--; f.running[namespace] == 0 {
		delete(f.running, namespace)
	}
	if len(f.parked) == 0 {
		return
	}
	f.forget()
	running := maps.Clone(f.running)
	f.parked = slices.DeleteFunc(f.parked, func(key types.NamespacedName) bool {
		if !f.free(key.Namespace, running) {
			return false
		}
		running[key.Namespace]++
		f.add(key, 0)
		return true
	})
}

// forget forgets which namespaces were slow some time ago.
func (f *fair) forget() {
	now := f.clock.Now()
	maps.DeleteFunc(f.slow, func(_ string, until time.Time) bool { return !now.Before(until) })
}

// free reports whether there is a worker for one more object of a namespace where these run.
func (f *fair) free(namespace string, running map[string]int) bool {
	if running[namespace] >= f.each {
		return false
	}
	if _, slow := f.slow[namespace]; !slow {
		return true
	}
	busy := 0 // also with what began before its namespace was slow
	for namespace, n := range running {
		if _, slow := f.slow[namespace]; slow {
			busy += n
		}
	}
	return busy < f.most
}
