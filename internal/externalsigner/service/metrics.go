package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// Outcome is the result of a request to sign. The set is fixed, so that it can be the label of a metric.
type Outcome string

// The outcomes.
const (
	Signed          Outcome = "signed"
	MalformedClaims Outcome = "malformed_claims" // not claims that could be checked
	OtherIssuer     Outcome = "other_issuer"     // claims of an issuer that this is not the signer of
	WrongTimes      Outcome = "wrong_times"      // iat in the future, or exp past or too far away
	NoRing          Outcome = "no_ring"          // the ring could not be read, or not recently
	NoKey           Outcome = "no_key"           // no key of the algorithm may sign now
	Failed          Outcome = "failed"           // the key gave no signature
)

// Outcomes lists every Outcome.
func Outcomes() []Outcome {
	return []Outcome{Signed, MalformedClaims, OtherIssuer, WrongTimes, NoRing, NoKey, Failed}
}

// Recorder keeps the metrics of a Service. A nil Recorder records nothing.
type Recorder struct {
	signatures *prometheus.CounterVec
	seconds    prometheus.Histogram
}

// NewRecorder returns a recorder whose metrics are in registry.
func NewRecorder(registry prometheus.Registerer) *Recorder {
	r := &Recorder{
		signatures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_signer_signatures_total",
			Help: "Claims that were to be signed, by algorithm and what became of them.",
		}, []string{"algorithm", "outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "credence_signer_sign_duration_seconds",
			Help:    "How long it took to check and sign claims, of those that were signed.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
		}),
	}
	for _, algorithm := range keys.Algorithms() {
		for _, outcome := range Outcomes() {
			r.signatures.WithLabelValues(string(algorithm), string(outcome))
		}
	}
	registry.MustRegister(r.signatures, r.seconds)
	return r
}

func (r *Recorder) record(algorithm identity.Algorithm, outcome Outcome, took time.Duration) {
	if r == nil {
		return
	}
	r.signatures.WithLabelValues(string(algorithm), string(outcome)).Inc()
	if outcome == Signed {
		r.seconds.Observe(took.Seconds())
	}
}
