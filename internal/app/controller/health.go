package controller

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/credence-id/credence/internal/keyring"
)

type healthHandler = http.Handler

// newHealthHandler answers /livez, /readyz and /metrics. The controller is ready once it has read the ring, and stays so
// through an outage of the store: nothing is gained by ending it. A ring that is damaged makes it unready, whoever leads.
func newHealthHandler(ring *keyring.Follower, registry *prometheus.Registry) healthHandler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, loaded := ring.Newest(); !loaded {
			answer(w, http.StatusServiceUnavailable, "the ring of keys is not loaded yet")
		} else if ring.Damaged() {
			answer(w, http.StatusServiceUnavailable, "the stored ring of keys can not be used, see the log")
		} else {
			answer(w, http.StatusOK, "ok")
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n"))
}
