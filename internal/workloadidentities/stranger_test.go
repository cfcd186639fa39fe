package workloadidentities_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/workloadidentities"
	"github.com/credence-id/credence/test/testkit"
)

// Deliveries stay when the WorkloadCluster no longer lists the agent's user: the list is empty, and has a warning.
func TestDeliveriesStayInNoCluster(t *testing.T) { synctest.Test(t, deliveriesStayInNoCluster) }

func deliveriesStayInNoCluster(t *testing.T) {
	api, log, taken := &deliveryAPI{}, &lines{}, false
	api.set("", "", deliveryInto("a", "s"))
	deliveries := testkit.Need(workloadidentities.NewDeliveries(&rest.Config{
		Host: "http://identities", QPS: -1, WarningHandler: rest.NoWarnings{},
		Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if taken {
				w.Header().Set("Warning", `299 - "user \"agent\" `+v1alpha1.InNoWorkloadCluster+`"`)
			}
			api.ServeHTTP(w, r)
		})},
	}, "east", func(*v1alpha1.ContextDelivery) {}, func() {}, slog.New(slog.NewTextHandler(log, nil))))(t)
	go func() { _ = deliveries.Run(t.Context()) }()
	wait := func() {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	}
	wait()
	taken = true
	api.set("", `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	wait()
	if of := deliveries.Of(types.NamespacedName{Namespace: "ns", Name: "s"}); len(of) != 1 || log.count("exactly one WorkloadCluster") != 1 {
		t.Errorf("%v, logged %d times", of, log.count("exactly one WorkloadCluster"))
	}
}
