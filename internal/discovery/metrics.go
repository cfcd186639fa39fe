package discovery

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// servedDocument and answer are the labels of requests, as indexes so that counting one is a single addition.
type (
	servedDocument int
	answer         int
)

const (
	configurationServed servedDocument = iota
	jwksServed
	otherDocument
	servedDocuments
)

const (
	answerOK answer = iota
	answerNotModified
	answerNotFound
	answerMethodNotAllowed
	answerUnavailable
	answers
)

// Recorder keeps the metrics of a Handler. A nil Recorder records nothing.
type Recorder struct {
	now      func() time.Time
	requests [servedDocuments][answers]prometheus.Counter
	refusals map[Reason]prometheus.Counter
	healthy  prometheus.Gauge
	loadedAt atomic.Pointer[time.Time]

	age                 *prometheus.Desc
	certificateExpiry   prometheus.Gauge
	certificateRefusals prometheus.Counter
}

// NewRecorder returns a recorder whose metrics are in registry; now is the clock of the documents' age.
func NewRecorder(registry prometheus.Registerer, now func() time.Time) *Recorder {
	r := &Recorder{
		now:      now,
		refusals: map[Reason]prometheus.Counter{},
		healthy: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_discovery_source_healthy",
			Help: "1 if the newest documents of the source are the ones that are served, 0 if they are refused or cannot be read.",
		}),
		age: prometheus.NewDesc("credence_discovery_documents_age_seconds",
			"Seconds since the documents that are served were loaded; absent until then.", nil, nil),
		certificateExpiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_discovery_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate expires, in seconds since 1970.",
		}),
		certificateRefusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "credence_discovery_certificate_refusals_total",
			Help: "Serving certificates and keys that were not taken; the last good pair stays in use.",
		}),
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "credence_discovery_requests_total",
		Help: "Requests by document and status code.",
	}, []string{"document", "code"})
	for d, document := range [servedDocuments]string{configurationName, jwksName, "other"} {
		for a, code := range [answers]string{"200", "304", "404", "405", "503"} {
			if (servedDocument(d) == otherDocument) == (answer(a) == answerNotFound) {
				r.requests[d][a] = requests.WithLabelValues(document, code)
			}
		}
	}
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "credence_discovery_load_refusals_total",
		Help: "Documents that were not taken from the source, by reason; the last good ones stay served.",
	}, []string{"reason"})
	for _, reason := range Reasons() {
		r.refusals[reason] = refusals.WithLabelValues(string(reason))
	}
	registry.MustRegister(requests, refusals, r.healthy, r.certificateExpiry, r.certificateRefusals, ageCollector{r})
	return r
}

// CertificateLoaded records the expiry of the serving certificate that is used from now on.
func (r *Recorder) CertificateLoaded(notAfter time.Time) {
	if r != nil {
		r.certificateExpiry.Set(float64(notAfter.Unix()))
	}
}

// CertificateRefused records that a new serving certificate or key was not taken.
func (r *Recorder) CertificateRefused() {
	if r != nil {
		r.certificateRefusals.Inc()
	}
}

func (r *Recorder) served(document servedDocument, answer answer) {
	if r != nil {
		r.requests[document][answer].Inc()
	}
}

func (r *Recorder) changed() {
	if r != nil {
		now := r.now()
		r.loadedAt.Store(&now)
	}
}

func (r *Recorder) accepted() {
	if r != nil {
		r.healthy.Set(1)
	}
}

func (r *Recorder) refused(reason Reason) {
	if r != nil {
		r.refusals[reason].Inc()
		r.healthy.Set(0)
	}
}

// ageCollector omits the age while there are no documents: no number would be true.
type ageCollector struct{ recorder *Recorder }

// Describe implements prometheus.Collector.
func (c ageCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.recorder.age }

// Collect implements prometheus.Collector.
func (c ageCollector) Collect(metrics chan<- prometheus.Metric) {
	if loadedAt := c.recorder.loadedAt.Load(); loadedAt != nil {
		age := c.recorder.now().Sub(*loadedAt).Seconds()
		metrics <- prometheus.MustNewConstMetric(c.recorder.age, prometheus.GaugeValue, age)
	}
}
