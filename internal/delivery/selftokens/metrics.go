package selftokens

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// bound is one of those of the requests that are worked on at a time; a label of metrics.
type bound string

const (
	ofAll       bound = "all"
	ofAddress   bound = "address"
	ofNamespace bound = "namespace"
)

// codes are those of answers by which requests are counted. Those of the identity cluster that are not among them are other.
var codes = []string{"201", "400", "401", "403", "404", "429", "500", "503"}

const otherCode = "other"

// Recorder keeps the metrics of a Handler. No label has a value that a caller chooses.
type Recorder struct {
	requests, turnedAway *prometheus.CounterVec
	duration             prometheus.Histogram
	inFlight             prometheus.Gauge
}

// NewRecorder returns a Recorder whose metrics are in registry: zeros without a Handler.
func NewRecorder(registry prometheus.Registerer) *Recorder {
	r := &Recorder{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_agent_pods_requests_total", Help: "Requests for tokens of pods, by the code of the answer.",
		}, []string{"code"}),
		turnedAway: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_agent_pods_turned_away_total", Help: "Requests for tokens of pods that were refused as too many were worked on, by the bound.",
		}, []string{"bound"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "credence_agent_pods_request_seconds", Help: "How long requests for tokens of pods took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25},
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_agent_pods_in_flight", Help: "Requests for tokens of pods that are worked on.",
		}),
	}
	for _, code := range append(slices.Clone(codes), otherCode) {
		r.requests.WithLabelValues(code)
	}
	for _, b := range []bound{ofAll, ofAddress, ofNamespace} {
		r.turnedAway.WithLabelValues(string(b))
	}
	registry.MustRegister(r.requests, r.turnedAway, r.duration, r.inFlight)
	return r
}

func (r *Recorder) answered(code int, took time.Duration) {
	label := strconv.Itoa(code)
	if !slices.Contains(codes, label) {
		label = otherCode
	}
	r.requests.WithLabelValues(label).Inc()
	r.duration.Observe(took.Seconds())
}
