package delivery

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/test/testkit"
)

// A timer may stand still for a night: a wait is never longer than ten minutes.
func TestWaitsAreBounded(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: 0, time.Second: time.Second, time.Hour: 10 * time.Minute} {
		inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: asked}, nil
		})
		if got, err := (wakeful{inner}).Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != want {
			t.Errorf("due after %s it sleeps %s, %v, want %s", asked, got.RequeueAfter, err, want)
		}
	}
}

// A namespace may lose its label before its Secrets can be read: the right to them is looked at once they can.
func TestNamespaceServedLateIsLookedAtForRelease(t *testing.T) {
	agent := testkit.Need(New(Config{Workload: &rest.Config{Host: "https://none.example"}, Registry: prometheus.NewRegistry(), Random: func() float64 { return 0.5 }}))(t)
	releases := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer releases.ShutDown()
	testkit.Must(t, agent.served.Start(t.Context(), releases))
	agent.namespaceServed("ns")
	if releases.Len() != 1 {
		t.Fatalf("%d namespaces are looked at, want 1", releases.Len())
	}
	if got, _ := releases.Get(); got.NamespacedName != (types.NamespacedName{Name: "ns"}) {
		t.Errorf("looked at: %s", got)
	}
}
