package clientgo

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"weak"

	"k8s.io/client-go/tools/metrics"

	"github.com/credence-id/credence/execcredential"
)

// Metrics feeds the metrics that client-go has for its own plugin: rest_client_exec_plugin_call_total, …_ttl_seconds and
// …_certificate_rotation_age. One is for all pools of a process, as each of these metrics is one, and its zero value is ready:
//
//	var metrics clientgo.Metrics
//	pool, err := execcredential.NewPool(execcredential.Options{OnRun: metrics.Run})
//
// It keeps nothing of a source but the end of its certificate, and forgets that with the source.
type Metrics struct {
	mu   sync.Mutex
	ends map[weak.Pointer[execcredential.Source]]time.Time
}

// Run is for Options.OnRun. Besides counting the run it reports the end of the certificate that ends first among those of all sources that
// are still referenced; and, if the run replaced a certificate, how old that was.
func (m *Metrics) Run(run execcredential.Run) {
	count(run)
	if run.Replaced != nil {
		metrics.ClientCertRotationAge.Observe(time.Since(run.Replaced.NotBefore))
	}
	if run.Err != nil || run.Source == nil {
		return
	}
	source := weak.Make(run.Source)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.ends[source]
	switch {
	case run.Certificate != nil:
		if m.ends == nil {
			m.ends = map[weak.Pointer[execcredential.Source]]time.Time{}
		}
		m.ends[source] = run.Certificate.NotAfter
		if !known {
			runtime.AddCleanup(run.Source, m.forget, source)
		}
	case known:
		m.ends[source] = time.Time{} // a token now; its cleanup is there already
	default:
		return // tokens have no metrics of their end
	}
	m.report()
}

// Reset forgets all certificates. It is for when the pools are closed, and their sources are still referenced.
func (m *Metrics) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.ends)
	m.report()
}

func (m *Metrics) forget(source weak.Pointer[execcredential.Source]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.ends[source]; known {
		delete(m.ends, source)
		m.report()
	}
}

// report is called with m.mu held, so that the last word is the latest.
func (m *Metrics) report() {
	var first *time.Time
	for _, end := range m.ends {
		if !end.IsZero() && (first == nil || end.Before(*first)) {
			first = &end
		}
	}
	metrics.ClientCertExpiry.Set(first)
}

// count counts a run with the labels that client-go uses.
func count(run execcredential.Run) {
	var exit *execcredential.ExitError
	var missing *execcredential.NotFoundError
	var start *execcredential.StartError
	var output *execcredential.OutputError
	switch {
	case run.Err == nil, errors.As(run.Err, &output):
		metrics.ExecPluginCalls.Increment(0, "no_error")
	case errors.As(run.Err, &exit):
		metrics.ExecPluginCalls.Increment(exit.Code, "plugin_execution_error")
	case errors.As(run.Err, &missing), errors.As(run.Err, &start):
		metrics.ExecPluginCalls.Increment(1, "plugin_not_found_error")
	default:
		metrics.ExecPluginCalls.Increment(1, "client_internal_error")
	}
}
