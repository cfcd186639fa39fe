package pullsecrets

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
)

// The causes that the agent does not have.
const (
	registryUnknown   failures.Cause = "registry_unknown"   // the configuration does not have a listed registry
	registryRefused   failures.Cause = "registry_refused"   // a registry, or its endpoint, gives no password
	registriesInvalid failures.Cause = "registries_invalid" // the configuration cannot be read
)

// entry is the state of a Secret in memory: nothing that would be missed after a restart.
type entry struct {
	failures.Record
	// token and passwords are when these expire; zero: not known.
	token, passwords time.Time
	writes           renewal.Pace
}

// Recorder keeps the metrics, and what is remembered of Secrets.
type Recorder struct {
	writes           prometheus.Counter
	failures         *prometheus.CounterVec
	secrets, soonest *prometheus.Desc
	clock            clock.PassiveClock
	ledger           failures.Ledger[entry]
}

// NewRecorder returns a Recorder.
func NewRecorder(clock clock.PassiveClock) *Recorder {
	r := &Recorder{
		writes: prometheus.NewCounter(prometheus.CounterOpts{Name: "credence_registry_renewals_total", Help: "Times that passwords of registries were written into a Secret."}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_registry_failures_total", Help: "Times that a Secret got no passwords, by why.",
		}, []string{"cause"}),
		secrets: prometheus.NewDesc("credence_registry_secrets", "Secrets in which passwords of registries are kept.", nil, nil),
		soonest: prometheus.NewDesc("credence_registry_soonest_expiry_seconds", "Time until the passwords, or the token, that expire first expire; negative once they have. Absent without any.", nil, nil),
		clock:   clock,
	}
	for _, cause := range []failures.Cause{failures.AnnotationInvalid, failures.UseDenied, failures.ReviewFailed, registriesInvalid, registryUnknown, registryRefused, failures.WriteFailed} {
		r.failures.WithLabelValues(string(cause))
	}
	return r
}

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(descriptions chan<- *prometheus.Desc) {
	r.writes.Describe(descriptions)
	r.failures.Describe(descriptions)
	descriptions <- r.secrets
	descriptions <- r.soonest
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(metrics chan<- prometheus.Metric) {
	r.writes.Collect(metrics)
	r.failures.Collect(metrics)
	count, soonest := 0, time.Time{}
	r.ledger.Each(func(e entry) {
		count++
		for _, end := range []time.Time{e.token, e.passwords} {
			if !end.IsZero() && (soonest.IsZero() || end.Before(soonest)) {
				soonest = end
			}
		}
	})
	metrics <- prometheus.MustNewConstMetric(r.secrets, prometheus.GaugeValue, float64(count))
	if !soonest.IsZero() {
		metrics <- prometheus.MustNewConstMetric(r.soonest, prometheus.GaugeValue, soonest.Sub(r.clock.Now()).Seconds())
	}
}
