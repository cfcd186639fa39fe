package delivery

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/internal/delivery/accounts"
)

// The binder takes a moment: only an account that waits for longer gets an Event, and nothing is written meanwhile.
func TestAccountInANamespaceWithoutABinding(t *testing.T) {
	w := newWorld(t, enabledNamespace("ns"), account("ns", "web", "banana"))
	w.addIdentity("ns", "banana", "u1")
	w.unserved = "ns"
	for try := 1; try <= accounts.Patience; try++ {
		wait := w.lookAtAccount()
		if wait <= 0 {
			t.Fatalf("try %d: not looked at again", try)
		}
		event := w.event()
		if reported := strings.Contains(event, "NamespaceNotBound") && strings.Contains(event, "credence-server binder"); reported != (try == accounts.Patience) {
			t.Errorf("try %d: the Event is %q", try, event)
		}
		w.pass(wait)
	}
	if names := w.secretNames(); len(names) > 0 {
		t.Errorf("Secrets %v were created", names)
	}
	w.unserved = ""
	w.lookAtAccount()
	if names := w.secretNames(); len(names) != 1 {
		t.Errorf("once it is served there are Secrets %v", names)
	}
}

// A namespace may lose its label before its Secrets can be read: the right to them is looked at once they can.
func TestANamespaceThatIsServedLateMayHaveLostItsLabel(t *testing.T) {
	agent, err := New(Config{Workload: &rest.Config{Host: "https://none.example"}, Registry: prometheus.NewRegistry(), Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	releases := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer releases.ShutDown()
	if err := agent.served.Start(t.Context(), releases); err != nil {
		t.Fatal(err)
	}
	agent.namespaceServed("ns")
	if releases.Len() != 1 {
		t.Fatalf("%d namespaces are looked at, want 1", releases.Len())
	}
	if got, _ := releases.Get(); got.NamespacedName != (types.NamespacedName{Name: "ns"}) {
		t.Errorf("looked at: %s", got)
	}
}
