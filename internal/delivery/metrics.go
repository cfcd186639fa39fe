package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/outage"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// Recorder counts what the agent does.
type Recorder struct {
	renewals *prometheus.CounterVec
	failures *prometheus.CounterVec
	gates    prometheus.Counter

	soonest, secrets, outageSeconds, waiting, deliveries *prometheus.Desc

	clock     clock.PassiveClock
	expires   func() (soonest time.Time, secrets int)
	lasts     func() (since time.Time, waiting int)
	delivered func() map[contexts.State]int
}

func newRecorder(clock clock.PassiveClock, ledger *secrets.Ledger, wanted *contexts.Ledger, outage *outage.Outage) *Recorder {
	r := &Recorder{
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_agent_renewals_total", Help: "Tokens written into Secrets, by why they were renewed.",
		}, []string{"reason"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_agent_failures_total", Help: "Times that a Secret got no token, by why.",
		}, []string{"cause"}),
		gates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "credence_agent_gates_released_total", Help: "Pods whose scheduling gate was removed, as their tokens exist.",
		}),
		soonest: prometheus.NewDesc("credence_agent_soonest_expiry_seconds", "Time until the token that expires first expires; negative once it has. Absent without tokens.", nil, nil),
		secrets: prometheus.NewDesc("credence_agent_secrets", "Secrets that are kept filled with tokens.", nil, nil),
		outageSeconds: prometheus.NewDesc("credence_agent_identity_cluster_outage_seconds",
			"For how long the identity cluster has not answered for any namespace; 0 while it does.", nil, nil),
		waiting: prometheus.NewDesc("credence_agent_secrets_waiting", "Secrets that wait for the identity cluster to answer.", nil, nil),
		deliveries: prometheus.NewDesc("credence_agent_context_deliveries", "Secrets that context objects of the identity cluster need in this cluster, by what has become of them.",
			[]string{"state"}, nil),
		clock: clock, expires: ledger.Soonest, lasts: outage.Lasts, delivered: wanted.Count,
	}
	for _, reason := range renewal.Reasons() {
		r.renewals.WithLabelValues(string(reason))
	}
	for _, cause := range failures.Causes() {
		r.failures.WithLabelValues(string(cause))
	}
	return r
}

// Renewed implements secrets.Recorder.
func (r *Recorder) Renewed(reason renewal.Reason) {
	r.renewals.WithLabelValues(string(reason)).Inc()
}

// Failed implements secrets.Recorder.
func (r *Recorder) Failed(cause failures.Cause) { r.failures.WithLabelValues(string(cause)).Inc() }

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(descriptions chan<- *prometheus.Desc) {
	r.renewals.Describe(descriptions)
	r.failures.Describe(descriptions)
	r.gates.Describe(descriptions)
	for _, description := range []*prometheus.Desc{r.soonest, r.secrets, r.outageSeconds, r.waiting, r.deliveries} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(metrics chan<- prometheus.Metric) {
	r.renewals.Collect(metrics)
	r.failures.Collect(metrics)
	r.gates.Collect(metrics)
	gauge := func(description *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value)
	}
	soonest, secrets := r.expires()
	if !soonest.IsZero() {
		gauge(r.soonest, soonest.Sub(r.clock.Now()).Seconds())
	}
	gauge(r.secrets, float64(secrets))
	since, waiting := r.lasts()
	var lasted time.Duration
	if !since.IsZero() {
		lasted = r.clock.Since(since)
	}
	gauge(r.outageSeconds, lasted.Seconds())
	gauge(r.waiting, float64(waiting))
	delivered := r.delivered()
	for _, state := range contexts.States() {
		metrics <- prometheus.MustNewConstMetric(r.deliveries, prometheus.GaugeValue, float64(delivered[state]), string(state))
	}
}
