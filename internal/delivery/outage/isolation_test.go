package outage_test

import (
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
	"github.com/credence-id/credence/internal/delivery/deliverytest"
	"github.com/credence-id/credence/test/testkit"
)

// teams is a world in which teams have six Secrets each, and a team g forty, all due, those of g last.
func teams(t *testing.T, names ...string) (*deliverytest.World, *deliverytest.Agenda) {
	w := deliverytest.New(t)
	a := &deliverytest.Agenda{}
	w.Follow(a)
	for _, namespace := range append(names, "g") {
		n, at := 6, deliverytest.Start
		if namespace == "g" {
			n, at = 40, deliverytest.Start.Add(time.Millisecond)
		}
		w.AddIdentity(namespace, "banana", "u-"+namespace)
		for i := range n {
			secret := deliverytest.LabeledSecret(namespace, fmt.Sprintf("s%d", i), "banana")
			testkit.Must(t, w.Client.Create(t.Context(), secret))
			a.Add(types.NamespacedName{Namespace: namespace, Name: secret.Name}, at)
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
func TestFailingNamespaceDoesNotDelayOthers(t *testing.T) {
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
			w.DownIn["b"] = test.answer
			w.Drive(a, deliverytest.Start.Add(time.Second))
			if len(w.Tokens) != 40 {
				t.Errorf("%d tokens were written within a second, want the 40 of g", len(w.Tokens))
			}
			w.Drive(a, deliverytest.Start.Add(10*time.Minute))
			if n := len(w.Refused); n < 2 || n > test.most {
				t.Errorf("b has requested %d times in ten minutes, want 2 to %d", n, test.most)
			}
			if since, _ := w.Secrets.Outage.Lasts(); !since.IsZero() {
				t.Errorf("an outage of the identity cluster since %s", since)
			}
			delete(w.DownIn, "b")
			w.Drive(a, deliverytest.Start.Add(16*time.Minute))
			if len(w.Tokens) != 46 {
				t.Errorf("%d tokens were written in the end, want all 46", len(w.Tokens))
			}
		})
	}
}

// However many namespaces hang, the Secrets of another are renewed at once.
func TestHangingNamespacesDoNotDelayOthers(t *testing.T) {
	hanging := []string{"b", "c", "d", "e"}
	w, a := teams(t, hanging...)
	for _, namespace := range hanging {
		w.DownIn[namespace] = context.DeadlineExceeded
	}
	for minute := range 10 {
		w.Drive(a, deliverytest.Start.Add(time.Second+time.Duration(minute)*time.Minute))
		if len(w.Tokens) != 40 {
			t.Fatalf("%d tokens were written after %d minutes, want the 40 of g", len(w.Tokens), minute)
		}
		for i := range 40 {
			key := types.NamespacedName{Namespace: "g", Name: fmt.Sprintf("s%d", i)}
			w.Edit(key.String(), func(s *corev1.Secret) { s.Annotations[v1alpha1.AnnotationOperation] = v1alpha1.OperationRenewToken })
			a.Add(key, w.Clock.Now())
		}
		w.Tokens = nil
	}
	if n := len(w.Refused); n > 60*len(hanging) {
		t.Errorf("the hanging namespaces have requested %d times in ten minutes, want 60 times each at most", n)
	}
}

// Where reads fail, too, it is the cluster: the Secrets of other namespaces make no requests.
func TestOutageOfAllNamespaces(t *testing.T) {
	w, a := teams(t, "b")
	w.Down = errors.New("connection refused")
	w.Drive(a, deliverytest.Start.Add(10*time.Minute))
	if since, waiting := w.Secrets.Outage.Lasts(); !since.Equal(deliverytest.Start) || waiting != 46 {
		t.Errorf("an outage since %s, %d Secrets wait; want since %s, 46", since, waiting, deliverytest.Start)
	}
	if n := w.Metric("credence_agent_failures_total", "unreachable"); n > 60 {
		t.Errorf("%g requests within ten minutes, want a few in each", n)
	}
	w.Down = nil
	w.Drive(a, deliverytest.Start.Add(12*time.Minute))
	if len(w.Tokens) != 46 {
		t.Errorf("%d tokens were written in the end, want all 46", len(w.Tokens))
	}
}

// A second namespace without answers is evidence of an outage, which is reported, until a third is answered: then these two fail by themselves.
func TestTwoSilentNamespacesAreAnOutage(t *testing.T) {
	w := deliverytest.New(t)
	hangs := context.DeadlineExceeded
	w.DownIn = map[string]error{"a": hangs, "b": hangs}
	a := &deliverytest.Agenda{}
	w.Follow(a)
	begin := func(namespaces ...string) {
		for _, namespace := range namespaces {
			w.AddIdentity(namespace, "banana", "u-"+namespace)
			testkit.Must(t, w.Client.Create(t.Context(), deliverytest.LabeledSecret(namespace, "s", "banana")))
			a.Add(types.NamespacedName{Namespace: namespace, Name: "s"}, w.Clock.Now())
		}
	}
	outage := func() bool { since, _ := w.Secrets.Outage.Lasts(); return !since.IsZero() }
	begin("a")
	w.Drive(a, w.Clock.Now().Add(time.Minute))
	if outage() {
		t.Fatal("one namespace without answers counts as an outage")
	}
	begin("b")
	w.Drive(a, w.Clock.Now().Add(time.Minute))
	if !outage() {
		t.Fatal("two namespaces without answers do not count")
	}
	begin("g")
	w.Drive(a, w.Clock.Now().Add(time.Minute))
	if len(w.Tokens) != 1 || outage() {
		t.Fatalf("%d tokens for the third namespace, an outage: %t", len(w.Tokens), outage())
	}
	for i := range 10 {
		begin(fmt.Sprintf("g%d", i))
		w.Drive(a, w.Clock.Now().Add(time.Minute))
		if len(w.Tokens) != 2+i || outage() {
			t.Fatalf("%d tokens for %d namespaces, an outage: %t", len(w.Tokens), 2+i, outage())
		}
	}
}
