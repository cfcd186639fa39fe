package delivery

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// counter returns the value of a series with one label, or of one without.
func counter(t *testing.T, recorder *Recorder, name, label string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(recorder)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if label == "" || metric.GetLabel()[0].GetValue() == label {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no series %s of %q", name, label)
	return 0
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, labelled("ns", "s", "banana"), labelled("ns", "lost", "unknown"))
	w.addIdentity("ns", "banana", "u1")
	w.look("ns/s")
	w.look("ns/lost")
	w.pass(10 * time.Minute)
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
		if got := counter(t, w.recorder, series.name, series.label); got != series.want {
			t.Errorf("%s %s is %g, want %g", series.name, series.label, got, series.want)
		}
	}
}
