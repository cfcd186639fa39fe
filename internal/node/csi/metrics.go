package csi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// tokenCause is why a token was written; a label of metrics.
type tokenCause string

const (
	firstToken   tokenCause = "first"
	renewedToken tokenCause = "renewed"
)

// failureCodes are those of calls that end without a token, by their names in metrics.
var failureCodes = map[codes.Code]string{
	codes.InvalidArgument: "invalid", codes.FailedPrecondition: "refused", codes.NotFound: "identity_missing", codes.Unauthenticated: "pod_token_refused",
	codes.PermissionDenied: "use_denied", codes.ResourceExhausted: "throttled_or_full", codes.Unavailable: "unavailable", codes.Internal: "write_failed",
}

// Recorder keeps the metrics of a Driver. A nil Recorder records nothing.
type Recorder struct {
	tokens, failures *prometheus.CounterVec
	mounts           prometheus.Histogram
	volumes, soonest *prometheus.Desc
	clock            clock.PassiveClock
	known            func() (volumes int, soonest time.Time)
}

// NewRecorder returns a Recorder. Its metrics have no label that a pod's author chooses.
func NewRecorder(clock clock.PassiveClock) *Recorder {
	r := &Recorder{
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_node_tokens_total", Help: "Tokens written into volumes: the first of a volume, or renewed.",
		}, []string{"cause"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_node_failures_total", Help: "Times that a volume got no token when one was due, by why.",
		}, []string{"cause"}),
		mounts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "credence_node_mount_seconds", Help: "How long new volumes took, with the request for their token.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		volumes: prometheus.NewDesc("credence_node_volumes", "Volumes with a token that the driver knows.", nil, nil),
		soonest: prometheus.NewDesc("credence_node_soonest_expiry_seconds", "Time until the token that expires first expires; negative once it has. Absent without tokens.", nil, nil),
		clock:   clock,
	}
	for _, cause := range []tokenCause{firstToken, renewedToken} {
		r.tokens.WithLabelValues(string(cause))
	}
	for _, cause := range failureCodes {
		r.failures.WithLabelValues(cause)
	}
	return r
}

func (r *Recorder) wrote(cause tokenCause) {
	if r != nil {
		r.tokens.WithLabelValues(string(cause)).Inc()
	}
}

func (r *Recorder) failed(err error) {
	if r == nil {
		return
	}
	cause, known := failureCodes[status.Code(err)]
	if !known {
		cause = failureCodes[codes.Internal]
	}
	r.failures.WithLabelValues(cause).Inc()
}

func (r *Recorder) mounted(took time.Duration) {
	if r != nil {
		r.mounts.Observe(took.Seconds())
	}
}

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(descriptions chan<- *prometheus.Desc) {
	r.tokens.Describe(descriptions)
	r.failures.Describe(descriptions)
	r.mounts.Describe(descriptions)
	descriptions <- r.volumes
	descriptions <- r.soonest
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(metrics chan<- prometheus.Metric) {
	r.tokens.Collect(metrics)
	r.failures.Collect(metrics)
	r.mounts.Collect(metrics)
	volumes, soonest := r.known()
	metrics <- prometheus.MustNewConstMetric(r.volumes, prometheus.GaugeValue, float64(volumes))
	if !soonest.IsZero() {
		metrics <- prometheus.MustNewConstMetric(r.soonest, prometheus.GaugeValue, soonest.Sub(r.clock.Now()).Seconds())
	}
}
