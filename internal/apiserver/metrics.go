package apiserver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"
)

// Metrics counts tokens issued and requests refused. Its labels are bounded: algorithms, and the API machinery's reasons.
type Metrics struct {
	issued, refused *metrics.CounterVec
	signing         *metrics.HistogramVec
}

// RingAge is the metric of the age of the ring of keys that tokens are signed with.
func RingAge(age func() time.Duration) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "credence", Subsystem: "apiserver", Name: "ring_age_seconds",
		Help: "Seconds since the ring of keys was read last; tokens are not signed with one that is too old.",
	}, func() float64 { return age().Seconds() })
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(register func(metrics.Registerable) error) (*Metrics, error) {
	m := &Metrics{
		issued: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "credence", Subsystem: "tokens", Name: "issued_total", StabilityLevel: metrics.ALPHA,
			Help: "Tokens issued, by signature algorithm.",
		}, []string{"algorithm"}),
		refused: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "credence", Subsystem: "tokens", Name: "refused_total", StabilityLevel: metrics.ALPHA,
			Help: "Requests for tokens that were refused, by reason of the API status.",
		}, []string{"reason"}),
		signing: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Namespace: "credence", Subsystem: "tokens", Name: "signing_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "How long the signatures of tokens took, by algorithm.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1},
		}, []string{"algorithm"}),
	}
	for _, collector := range []metrics.Registerable{m.issued, m.refused, m.signing} {
		if err := register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	// Counters that an alert looks at are there before the first refusal, or it would not be seen.
	for _, reason := range []string{"ServiceUnavailable", "InternalError"} {
		m.refused.WithLabelValues(reason)
	}
	return m, nil
}

// Issued implements tokenrequest.Recorder.
func (m *Metrics) Issued(algorithm identity.Algorithm) {
	m.issued.WithLabelValues(string(algorithm)).Inc()
}

// Signed implements tokenrequest.Recorder.
func (m *Metrics) Signed(algorithm identity.Algorithm, took time.Duration) {
	m.signing.WithLabelValues(string(algorithm)).Observe(took.Seconds())
}

// Refused implements tokenrequest.Recorder.
func (m *Metrics) Refused(reason string) {
	reason = cmp.Or(reason, "Unknown")
	m.refused.WithLabelValues(reason).Inc()
}
