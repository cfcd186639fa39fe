package delivery

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// drive looks at Secrets when they are due, until a time.
func (w *world) drive(a *agenda, until time.Time) {
	for a.Len() > 0 && !a.all[0].at.After(until) {
		next := heap.Pop(a).(item)
		if current, ok := a.at[next.key]; !ok || !current.Equal(next.at) {
			continue // an earlier look has taken its place
		}
		delete(a.at, next.key)
		if next.at.After(w.clock.Now()) {
			w.clock.SetTime(next.at)
		}
		if after := w.look(next.key.String()); after > 0 {
			a.add(next.key, w.clock.Now().Add(after))
		}
	}
	w.clock.SetTime(until)
}

// twoTeams is a world in which a team b has six Secrets and a team g forty, all due, those of b first.
func twoTeams(t *testing.T) (*world, *agenda) {
	w := newWorld(t)
	w.downIn = map[string]error{}
	a := &agenda{at: map[types.NamespacedName]time.Time{}}
	w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) { a.add(key, w.clock.Now().Add(after)) }
	for namespace, n := range map[string]int{"b": 6, "g": 40} {
		w.addIdentity(namespace, "banana", "u-"+namespace)
		for i := range n {
			secret := labelled(namespace, fmt.Sprintf("s%d", i), "banana")
			if err := w.client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			at := start0
			if namespace == "g" {
				at = at.Add(time.Millisecond)
			}
			a.add(types.NamespacedName{Namespace: namespace, Name: secret.Name}, at)
		}
	}
	return w, a
}

func tooMany(seconds int) error {
	err := apierrors.NewTooManyRequests("refused by a webhook", seconds)
	err.ErrStatus.Code = 429
	return err
}

// Whatever one namespace is answered, the Secrets of the other are renewed at once, and no outage is reported.
func TestAFailingNamespaceHoldsUpNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		most   int // requests of b within ten minutes
	}{
		"too many requests":        {tooMany(0), 60},
		"… for half a minute":      {tooMany(30), 21},
		"… for a day":              {tooMany(86400), 4},
		"entity too large":         {apierrors.NewRequestEntityTooLargeError("a policy"), 6 * 11},
		"a teapot":                 {apierrors.NewGenericServerResponse(418, "POST", v1alpha1.Resource("workloadidentities"), "banana", "", 0, true), 6 * 11},
		"a timeout":                {apierrors.NewTimeoutError("a webhook", 0), 60},
		"a gateway that times out": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 504}}, 60},
		"a request that hangs":     {fmt.Errorf("post: %w", context.DeadlineExceeded), 60},
		"an aggregated API's 404":  {apierrors.NewGenericServerResponse(404, "POST", v1alpha1.Resource("workloadidentities"), "banana", "404 page not found", 0, true), 60},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := twoTeams(t)
			w.downIn["b"] = test.answer
			w.drive(a, start0.Add(time.Second))
			if len(w.tokens) != 40 {
				t.Errorf("%d tokens were written within a second, want the 40 of g", len(w.tokens))
			}
			w.drive(a, start0.Add(10*time.Minute))
			if n := len(w.refused); n < 2 || n > test.most {
				t.Errorf("b has requested %d times in ten minutes, want 2 to %d", n, test.most)
			}
			if since, _ := w.requestor.Outage.Lasts(); !since.IsZero() {
				t.Errorf("an outage of the identity cluster since %s", since)
			}
			delete(w.downIn, "b")
			w.drive(a, start0.Add(16*time.Minute))
			if len(w.tokens) != 46 {
				t.Errorf("%d tokens were written in the end, want all 46", len(w.tokens))
			}
		})
	}
}

// Where reads fail, too, it is the cluster: the Secrets of other namespaces make no requests.
func TestAnOutageOfAllNamespaces(t *testing.T) {
	w, a := twoTeams(t)
	w.down = errors.New("connection refused")
	w.drive(a, start0.Add(10*time.Minute))
	if since, waiting := w.requestor.Outage.Lasts(); !since.Equal(start0) || waiting != 46 {
		t.Errorf("an outage since %s, %d Secrets wait; want since %s, 46", since, waiting, start0)
	}
	if n := counter(t, w.recorder, "credence_agent_failures_total", "unreachable"); n > 60 {
		t.Errorf("%g requests within ten minutes, want a few in each", n)
	}
	w.down = nil
	w.drive(a, start0.Add(12*time.Minute))
	if len(w.tokens) != 46 {
		t.Errorf("%d tokens were written in the end, want all 46", len(w.tokens))
	}
}

// A second namespace without answers is evidence of an outage, until a third is answered: then these two fail by themselves.
func TestASecondNamespaceIsEvidence(t *testing.T) {
	w := newWorld(t)
	hangs := context.DeadlineExceeded
	w.downIn = map[string]error{"a": hangs, "b": hangs}
	a := &agenda{at: map[types.NamespacedName]time.Time{}}
	w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) { a.add(key, w.clock.Now().Add(after)) }
	begin := func(namespaces ...string) {
		for _, namespace := range namespaces {
			w.addIdentity(namespace, "banana", "u-"+namespace)
			if err := w.client.Create(t.Context(), labelled(namespace, "s", "banana")); err != nil {
				t.Fatal(err)
			}
			a.add(types.NamespacedName{Namespace: namespace, Name: "s"}, w.clock.Now())
		}
	}
	outage := func() bool { since, _ := w.requestor.Outage.Lasts(); return !since.IsZero() }
	begin("a")
	w.drive(a, w.clock.Now().Add(time.Minute))
	if outage() {
		t.Fatal("one namespace without answers counts as an outage")
	}
	begin("b")
	w.drive(a, w.clock.Now().Add(time.Minute))
	if !outage() {
		t.Fatal("two namespaces without answers do not count")
	}
	begin("g")
	w.drive(a, w.clock.Now().Add(time.Minute))
	if len(w.tokens) != 1 || outage() {
		t.Fatalf("%d tokens for the third namespace, an outage: %t", len(w.tokens), outage())
	}
	for i := range 10 {
		begin(fmt.Sprintf("g%d", i))
		w.drive(a, w.clock.Now().Add(time.Minute))
		if len(w.tokens) != 2+i || outage() {
			t.Fatalf("%d tokens for %d namespaces, an outage: %t", len(w.tokens), 2+i, outage())
		}
	}
}

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
	f := newFair(inner, clock, 4, func(key types.NamespacedName, _ time.Duration) { queued = append(queued, key) })
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
	f := newFair(inner, clock, 4, func(types.NamespacedName, time.Duration) { queued++ })
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
