package delivery

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// teams is a world in which teams have six Secrets each, and a team g forty, all due, those of g last.
func teams(t *testing.T, names ...string) (*world, *agenda) {
	w := newWorld(t)
	w.downIn = map[string]error{}
	a := &agenda{at: map[types.NamespacedName]time.Time{}}
	w.requestor.Outage.Add = func(key types.NamespacedName, after time.Duration) { a.add(key, w.clock.Now().Add(after)) }
	for _, namespace := range append(names, "g") {
		n, at := 6, start0
		if namespace == "g" {
			n, at = 40, start0.Add(time.Millisecond)
		}
		w.addIdentity(namespace, "banana", "u-"+namespace)
		for i := range n {
			secret := labelled(namespace, fmt.Sprintf("s%d", i), "banana")
			if err := w.client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
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
			w, a := teams(t, "b")
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

// However many namespaces hang, the Secrets of another are renewed at once.
func TestFailingNamespacesHoldUpNoOther(t *testing.T) {
	hanging := []string{"b", "c", "d", "e"}
	w, a := teams(t, hanging...)
	for _, namespace := range hanging {
		w.downIn[namespace] = context.DeadlineExceeded
	}
	for minute := range 10 {
		w.drive(a, start0.Add(time.Second+time.Duration(minute)*time.Minute))
		if len(w.tokens) != 40 {
			t.Fatalf("%d tokens were written after %d minutes, want the 40 of g", len(w.tokens), minute)
		}
		for i := range 40 {
			key := types.NamespacedName{Namespace: "g", Name: fmt.Sprintf("s%d", i)}
			w.edit(key.String(), func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
			a.add(key, w.clock.Now())
		}
		w.tokens = nil
	}
	if n := len(w.refused); n > 60*len(hanging) {
		t.Errorf("the hanging namespaces have requested %d times in ten minutes, want 60 times each at most", n)
	}
}

// Where reads fail, too, it is the cluster: the Secrets of other namespaces make no requests.
func TestAnOutageOfAllNamespaces(t *testing.T) {
	w, a := teams(t, "b")
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

// A second namespace without answers is evidence of an outage, which is reported, until a third is answered: then these two fail by themselves.
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
