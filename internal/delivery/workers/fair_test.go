package workers

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var start0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Namespaces whose objects take long share half of the workers; the others go on, and none is lost.
func TestSlowNamespacesLeaveWorkers(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start0)
	var queued []types.NamespacedName
	slow := map[string]bool{"b": true}
	running := make(chan func())
	inner := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		if slow[request.Namespace] {
			done := make(chan struct{})
			running <- func() { close(done) }
			<-done
			clock.SetTime(clock.Now().Add(10 * time.Second))
		}
		return reconcile.Result{RequeueAfter: time.Minute}, nil
	})
	f := Fair(inner, clock, 4, func(key types.NamespacedName, _ time.Duration) { queued = append(queued, key) }).(*fair)
	ended := make(chan reconcile.Result)
	look := func(namespace, name string) {
		go func() {
			result, _ := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			ended <- result
		}()
	}
	look("b", "first")
	(<-running)()
	<-ended
	// Two run, the third and the fourth are parked; a free worker looks at g.
	look("b", "one")
	end1 := <-running
	look("b", "two")
	end2 := <-running
	for _, name := range []string{"three", "four", "three"} {
		look("b", name)
		if got := <-ended; got.RequeueAfter != 0 {
			t.Fatalf("%s was looked at", name)
		}
	}
	look("g", "s")
	if got := <-ended; got.RequeueAfter != time.Minute {
		t.Fatal("an object of another namespace was not looked at")
	}
	end1()
	<-ended
	delete(slow, "b")
	end2()
	<-ended
	for i := 0; i < len(queued); i++ {
		look("b", queued[i].Name)
		<-ended
	}
	var names []string
	for _, key := range queued {
		names = append(names, key.Name)
	}
	if !slices.Equal(names, []string{"three", "four"}) {
		t.Errorf("queued again: %v, want each that was parked, in order", names)
	}
	clock.SetTime(clock.Now().Add(slowFor))
	look("g", "s")
	<-ended
	if len(f.slow) != 0 || len(f.running) != 0 || len(f.parked) != 0 {
		t.Errorf("still slow: %v, %v run, parked: %v", f.slow, f.running, f.parked)
	}
}

// Some objects of a namespace are quick, others hang: however many there are, one worker is left to others from the beginning, and
// half of them once one was slow.
func TestSlowAndQuickObjectsOfOneNamespace(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start0)
	queued := 0
	hung, ended := make(chan func()), make(chan bool)
	inner := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		if request.Name[0] == 'h' {
			done := make(chan struct{})
			hung <- func() { close(done) }
			<-done
		}
		return reconcile.Result{RequeueAfter: time.Minute}, nil
	})
	f := Fair(inner, clock, 4, func(types.NamespacedName, time.Duration) { queued++ }).(*fair)
	start := func(namespace, name string) {
		go func() {
			result, _ := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			ended <- result.RequeueAfter > 0
		}()
	}
	looked := func(namespace, name string) bool { start(namespace, name); return <-ended }
	var ends []func()
	hang := func(name string) { start("b", name); ends = append(ends, <-hung) }
	end := func() { ends[0](); ends = ends[1:]; <-ended }
	hang("h1")
	hang("h2")
	hang("h3")
	if looked("b", "h4") {
		t.Fatal("one namespace has all workers")
	}
	if !looked("g", "s") {
		t.Fatal("no worker is left to another namespace")
	}
	clock.SetTime(clock.Now().Add(10 * time.Second))
	end() // two run that began before the namespace was slow: these are all that it may have
	if looked("b", "h5") || looked("b", "quick") || queued != 0 {
		t.Fatal("a reconcile that began before a namespace was slow is not counted")
	}
	end()
	if queued != 1 || !looked("b", "quick") {
		t.Fatalf("%d were queued for the free worker, want 1, and a quick one looked at", queued)
	}
	hang("h4")
	if looked("b", "h6") {
		t.Fatal("a quick look has made a slow namespace count as quick")
	}
	end()
	end()
	// A parked object is not lost, also if its time has passed.
	clock.SetTime(clock.Now().Add(slowFor))
	looked("b", "quick")
	if queued < 4 || len(f.parked) != 0 || len(f.running) != 0 || len(f.slow) != 0 {
		t.Errorf("%d queued, parked: %v, %v run, slow: %v", queued, f.parked, f.running, f.slow)
	}
}
