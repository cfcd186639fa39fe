package apiserver

import (
	"fmt"

	"github.com/credence-id/credence/internal/identity"
	"k8s.io/component-base/metrics"
)

// Metrics counts tokens issued and requests refused. Its labels are bounded: algorithms, and the API machinery's reasons.
type Metrics struct {
	issued, refused *metrics.CounterVec
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
	}
	for _, collector := range []metrics.Registerable{m.issued, m.refused} {
		if err := register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// Issued implements tokenrequest.Recorder.
func (m *Metrics) Issued(algorithm identity.Algorithm) {
	m.issued.WithLabelValues(string(algorithm)).Inc()
}

// Refused implements tokenrequest.Recorder.
func (m *Metrics) Refused(reason string) {
	if reason == "" {
		reason = "Unknown"
	}
	m.refused.WithLabelValues(reason).Inc()
}
