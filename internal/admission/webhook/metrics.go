package webhook

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// handlerName and outcome are the labels of requests, as indexes so that counting one is a single addition.
type (
	handlerName int
	outcome     int
)

const (
	podsHandler handlerName = iota
	secretsHandler
	templatesHandler
	accountsHandler
	profilePodsHandler
	profileTemplatesHandler
	finishedPodsHandler
	quotasHandler
	mutateHandler
	validateHandler
	credentialSpecsHandler
	gmsaTemplatesHandler
	handlers
)

const (
	admitted  outcome = iota // as it is
	patched                  // with additions
	warned                   // with warnings alone, or with a refusal that is only reported
	denied                   // refused, with the reason
	failure                  // no decision was possible
	malformed                // no review
	outcomes
)

var (
	handlerNames = [handlers]string{"pods", "secrets", "templates", "serviceaccounts", "profile-pods", "profile-templates", "finished-pods", "quotas", "gmsa-mutate", "gmsa-validate", "gmsa-credentialspecs", "gmsa-templates"}
	outcomeNames = [outcomes]string{"admitted", "patched", "warned", "denied", "failed", "malformed"}
)

func (h handlerName) String() string { return handlerNames[h] }

func (a answer) outcome() outcome {
	switch {
	case a.code >= http.StatusInternalServerError:
		return failure
	case a.code != 0:
		return denied
	case len(a.patch) > 0:
		return patched
	case len(a.warnings) > 0 || a.reported:
		return warned
	}
	return admitted
}

// Recorder keeps the metrics of a Webhook. A nil Recorder records nothing.
type Recorder struct {
	requests [handlers][outcomes]prometheus.Counter
	duration [handlers]prometheus.Observer
}

// NewRecorder returns a recorder whose metrics are in registry.
func NewRecorder(registry prometheus.Registerer) *Recorder {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "credence_admission_requests_total",
		Help: "Admission reviews by handler and by what came of them.",
	}, []string{"handler", "outcome"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "credence_admission_duration_seconds",
		Help:    "How long admission reviews took, by handler.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"handler"})
	registry.MustRegister(requests, duration)
	r := &Recorder{}
	for h, handler := range handlerNames {
		r.duration[h] = duration.WithLabelValues(handler)
		for o, outcome := range outcomeNames {
			r.requests[h][o] = requests.WithLabelValues(handler, outcome)
		}
	}
	return r
}

func (r *Recorder) served(handler handlerName, outcome outcome, took time.Duration) {
	if r != nil {
		r.requests[handler][outcome].Inc()
		r.duration[handler].Observe(took.Seconds())
	}
}
