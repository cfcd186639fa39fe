package keeper

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/credence-id/credence/internal/certificates"
)

// authorityLabel is the value of the label certificate for the authority.
const authorityLabel = "authority"

// Recorder counts what becomes of certificates.
type Recorder struct {
	expiry  *prometheus.GaugeVec
	issued  *prometheus.CounterVec
	failing prometheus.Gauge
}

// NewRecorder registers the metrics of a keeper.
func NewRecorder(registry prometheus.Registerer) *Recorder {
	r := &Recorder{
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "credence_certificates_expiry_timestamp_seconds", Help: "When the certificate that is stored for a component expires; the authority is one, too.",
		}, []string{"certificate"}),
		issued: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "credence_certificates_made_total", Help: "Certificates and authorities that were made and stored.",
		}, []string{"certificate"}),
		failing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "credence_certificates_failing", Help: "1 while something that must be read, made or written cannot be.",
		}),
	}
	registry.MustRegister(r.expiry, r.issued, r.failing)
	return r
}

func (r *Recorder) made(certificate string) { r.issued.WithLabelValues(certificate).Inc() }

func (r *Recorder) failed(err error) {
	r.failing.Set(0)
	if err != nil {
		r.failing.Set(1)
	}
}

// found records when what is stored expires. A certificate that is missing, or cannot be read, has no series.
func (r *Recorder) found(found certificates.Found, wanted []certificates.Wanted) {
	r.stored(authorityLabel, found.Authority)
	for _, w := range wanted {
		r.stored(w.Name, found.Certificates[w.Name])
	}
}

func (r *Recorder) stored(certificate string, stored certificates.Stored) {
	pair, err := tls.X509KeyPair(stored.Certificate, stored.Key)
	if err != nil {
		r.expiry.DeleteLabelValues(certificate)
		return
	}
	r.expiry.WithLabelValues(certificate).Set(float64(pair.Leaf.NotAfter.Unix()))
}
