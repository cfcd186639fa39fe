package keyring

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/internal/keyring/keys"
)

// Recorder keeps the metrics of a ring. A nil Recorder records nothing. Labels are bounded: algorithms, states, kinds.
type Recorder struct {
	now    func() time.Time
	events *prometheus.CounterVec

	mu   sync.Mutex
	kept *Kept
	// damaged and superseded are unset until the ring was read, or could not be.
	damaged, superseded *bool
}

var (
	keysDesc = prometheus.NewDesc("credence_keys", "Published keys, by algorithm and state.", []string{"algorithm", "state"}, nil)
	nextDesc = prometheus.NewDesc("credence_keys_next_change_seconds",
		"Seconds until the published documents change next; negative while a change is overdue, absent if it is not known.", nil, nil)
	conditionDesc = prometheus.NewDesc("credence_keys_condition", "1 for each thing that is wrong with the ring, by type.", []string{"type"}, nil)
	readDesc      = prometheus.NewDesc("credence_keys_read_timestamp_seconds", "When the ring was read last, in seconds since 1970.", nil, nil)
	activeDesc    = prometheus.NewDesc("credence_keys_active_since_timestamp_seconds", "Since when the key that signs does so, in seconds since 1970.", []string{"algorithm"}, nil)
)

// NewRecorder returns a recorder whose metrics are in registry.
func NewRecorder(registry prometheus.Registerer, now func() time.Time) *Recorder {
	r := &Recorder{now: now, events: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "credence_keys_events_total", Help: "Events of keys, by kind.",
	}, []string{"kind"})}
	for _, kind := range []keys.EventKind{keys.Published, keys.Requested, keys.Activated, keys.Retired, keys.Removed, keys.Revoked} {
		r.events.WithLabelValues(string(kind))
	}
	registry.MustRegister(r.events, r)
	return r
}

// Observe records a ring that was looked at.
func (r *Recorder) Observe(kept Kept) {
	r.keep(func() { r.kept = &kept })
}

// Damaged records whether there is a ring to sign with.
func (r *Recorder) Damaged(damaged bool) {
	r.keep(func() { r.damaged = &damaged })
}

// Superseded records whether the stored ring is older than what is known of it.
func (r *Recorder) Superseded(superseded bool) {
	r.keep(func() { r.superseded = &superseded })
}

func (r *Recorder) keep(change func()) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		change()
	}
}

// Happened counts an event.
func (r *Recorder) Happened(event keys.Event) {
	if r != nil {
		r.events.WithLabelValues(string(event.Kind)).Inc()
	}
}

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{keysDesc, nextDesc, conditionDesc, readDesc, activeDesc} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector. It sends nothing before a ring was read: no number would be true.
func (r *Recorder) Collect(metrics chan<- prometheus.Metric) {
	r.mu.Lock()
	kept, unusable := r.kept, map[string]*bool{"RingUnusable": r.damaged, "RingSuperseded": r.superseded}
	r.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for kind, is := range unusable {
		value := 0.
		if is != nil && *is {
			value = 1
		}
		if is != nil || kept != nil {
			gauge(conditionDesc, value, kind)
		}
	}
	if kept == nil {
		return
	}
	for _, algorithm := range keys.Algorithms() {
		count := map[keys.State]float64{keys.Active: 0, keys.Spare: 0, keys.Retiring: 0}
		for _, key := range kept.Ring.Keys {
			if key.Algorithm == algorithm {
				count[key.State]++
			}
		}
		for state, n := range count {
			gauge(keysDesc, n, string(algorithm), string(state))
		}
		if active, ok := kept.Ring.Signer(algorithm); ok {
			gauge(activeDesc, float64(active.ActivatedAt.Unix()), string(algorithm))
		}
	}
	if !kept.Plan.NextChange.IsZero() {
		gauge(nextDesc, kept.Plan.NextChange.Sub(r.now()).Seconds())
	}
	wrong := map[keys.ConditionType]float64{}
	for _, kind := range keys.ConditionTypes() {
		wrong[kind] = 0
	}
	for _, condition := range kept.Plan.Conditions {
		wrong[condition.Type] = 1
	}
	for kind, value := range wrong {
		gauge(conditionDesc, value, string(kind))
	}
	gauge(readDesc, float64(kept.ReadAt.Unix()))
}
