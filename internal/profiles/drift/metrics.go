package drift

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/internal/drift"
)

// Recorder counts what looks at pods have found, over all profiles: a series for each of them would be without bounds.
type Recorder struct {
	pods    *prometheus.GaugeVec
	looked  prometheus.Gauge
	seconds prometheus.Gauge
	// stopped are by the reason of the condition.
	stopped            map[string]prometheus.Gauge
	evicted, restarted *prometheus.CounterVec
}

// NewRecorder registers the metrics.
func NewRecorder(registry prometheus.Registerer) *Recorder {
	r := &Recorder{
		pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "credence_profiles_pods", Help: "Running pods of service accounts with a profile, by what was decided about them again.",
		}, []string{"state"}),
		looked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_profiles_pods_looked_at_timestamp_seconds", Help: "When all of these pods were last decided on.",
		}),
		seconds: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_profiles_pods_look_seconds", Help: "How long that took.",
		}),
		stopped: map[string]prometheus.Gauge{
			ReasonStopped: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "credence_profiles_evictions_stopped", Help: "Profiles whose pods are not evicted any more, as new ones do not become ready.",
			}),
			ReasonNoRestarts: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "credence_profiles_restarts_stopped", Help: "Profiles whose workloads are not restarted any more, as that did not help, or could not be done.",
			}),
		},
		evicted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_profiles_evictions_total", Help: "Evictions of pods that no longer match their profile, by result.",
		}, []string{"result"}),
		restarted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_profiles_restarts_total", Help: "Restarts of workloads whose pods no longer match their profile, by result.",
		}, []string{"result"}),
	}
	for _, result := range []string{held, failed} {
		r.evicted.WithLabelValues(result)
		r.restarted.WithLabelValues(result)
	}
	r.evicted.WithLabelValues(evicted)
	r.restarted.WithLabelValues(restarted)
	registry.MustRegister(r.pods, r.looked, r.seconds, r.stopped[ReasonStopped], r.stopped[ReasonNoRestarts], r.evicted, r.restarted)
	return r
}

// The results of evictions and restarts.
const (
	evicted   = "evicted"
	restarted = "restarted"
	held      = "budget"
	failed    = "error"
)

// labelOf is a state as the value of a label.
var labelOf = map[string]string{drift.Current: "current", drift.Unknown: "unknown", drift.Stale: "stale", drift.Missing: "identity-missing", drift.Refused: "refused"}

// look takes over what a look has found: complete, if it could decide on all pods.
func (r *Recorder) look(states, stopped map[string]int, complete bool, began, ended time.Time) {
	for _, state := range drift.States() {
		r.pods.WithLabelValues(labelOf[state]).Set(float64(states[state]))
	}
	for reason, gauge := range r.stopped {
		gauge.Set(float64(stopped[reason]))
	}
	if complete {
		r.looked.Set(float64(ended.Unix()))
	}
	r.seconds.Set(ended.Sub(began).Seconds())
}
