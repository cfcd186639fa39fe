package delivery_test

import (
	"testing"
	"time"

	"github.com/credence-id/credence/internal/delivery/deliverytest"
)

func TestMetrics(t *testing.T) {
	w := deliverytest.New(t, deliverytest.LabeledSecret("ns", "s", "banana"), deliverytest.LabeledSecret("ns", "lost", "unknown"))
	w.AddIdentity("ns", "banana", "u1")
	w.Look("ns/s")
	w.Look("ns/lost")
	w.Pass(10 * time.Minute)
	for _, series := range []struct {
		name, label string
		want        float64
	}{
		{"credence_agent_renewals_total", "missing", 1},
		{"credence_agent_failures_total", "identity_missing", 1},
		{"credence_agent_soonest_expiry_seconds", "", 3000},
		{"credence_agent_secrets", "", 2},
		{"credence_agent_identity_cluster_outage_seconds", "", 0},
	} {
		if got := w.Metric(series.name, series.label); got != series.want {
			t.Errorf("%s %s is %g, want %g", series.name, series.label, got, series.want)
		}
	}
}
