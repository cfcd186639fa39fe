package deliverytest

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Event returns the next Event that was written in the workload cluster, or "".
func (w *World) Event() string { return next(w.events.Events) }

// IdentityEvent returns the next Event that was written in the identity cluster, or "".
func (w *World) IdentityEvent() string { return next(w.identityEvents.Events) }

// Events returns all Events that Event has not returned yet, one a line.
func (w *World) Events() string {
	var all []string
	for event := w.Event(); event != ""; event = w.Event() {
		all = append(all, event)
	}
	return strings.Join(all, "\n")
}

func next(events chan string) string {
	select {
	case event := <-events:
		return event
	default:
		return ""
	}
}

// Metric returns the value of a series with one label, or of one without.
func (w *World) Metric(name, label string) float64 {
	w.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.Recorder)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
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
	w.t.Fatalf("there is no series %s of %q", name, label)
	return 0
}
