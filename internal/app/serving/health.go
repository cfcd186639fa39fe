package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/version"
)

// HealthPort is where a program shows its health, and with which certificate: the values of its flags.
type HealthPort struct {
	BindAddress                    string
	Port                           int
	TLSCertFile, TLSPrivateKeyFile string
}

// Check names the first flag that is wrong.
func (p HealthPort) Check() error {
	switch {
	case net.ParseIP(p.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", p.BindAddress)
	case p.Port < 0 || p.Port > 65535:
		return fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", p.Port)
	case p.Port != 0 && (p.TLSCertFile == "" || p.TLSPrivateKeyFile == ""):
		return errors.New("--health-port needs --tls-cert-file and --tls-private-key-file: the certificate to serve it with")
	}
	return nil
}

// Open listens there. The server and the certificate, which is read again when it changes, are to be run; errors name the flags.
func (p HealthPort) Open(ctx context.Context, handler http.Handler, log *slog.Logger) (*Server, *source.KeyPair, error) {
	pair, err := source.NewKeyPair(p.TLSCertFile, p.TLSPrivateKeyFile, (*discovery.Recorder)(nil), log)
	if err != nil {
		return nil, nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(p.BindAddress, strconv.Itoa(p.Port)))
	if err != nil {
		return nil, nil, fmt.Errorf("--health-port %d cannot be listened on, give another one (or another --bind-address): %w", p.Port, err)
	}
	return New("health", listener, handler, pair, log), pair, nil
}

// NewHealth returns the handler of /livez, /readyz, /version and, for readers, /metrics: those of registry, and credence_build_info.
// ready is called at every request: its error is why the program is not ready, and is shown to all.
func NewHealth(ready func() error, registry prometheus.Gatherer, readers *MetricsReaders) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(version.Read())
	})
	build := prometheus.NewRegistry()
	build.MustRegister(BuildInfo())
	mux.Handle("GET /metrics", readers.guard(promhttp.HandlerFor(prometheus.Gatherers{build, registry}, promhttp.HandlerOpts{})))
	return mux
}

// BuildInfo is a metric that is always 1, whose labels name the running build.
func BuildInfo() prometheus.Collector {
	info := version.Read()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "credence_build_info", Help: "1, with the version and the commit that the program was built from.",
		ConstLabels: prometheus.Labels{"version": info.Version, "revision": info.Revision, "goversion": info.GoVersion},
	}, func() float64 { return 1 })
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text + "\n"))
}
