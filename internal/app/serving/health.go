package serving

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/version"
)

// Health is where a component shows its health and metrics, and with which certificate: the values of its flags.
type Health struct {
	BindAddress                    string // empty: 127.0.0.1
	HealthPort                     int    // 0: no health server
	AnonymousMetrics               bool   // /metrics is for all
	TLSCertFile, TLSPrivateKeyFile string
}

// AddFlags adds the flags of a component whose one server is that of its health.
func (h *Health) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.BindAddress, "bind-address", defaultBindAddress, "IP address to listen on")
	flags.IntVar(&h.HealthPort, "health-port", 0, "port of /livez, /readyz and /metrics; 0: none")
	AddAnonymousMetrics(flags, &h.AnonymousMetrics)
	flags.StringVar(&h.TLSCertFile, "tls-cert-file", "", "file of the certificate to serve health and metrics with")
	flags.StringVar(&h.TLSPrivateKeyFile, "tls-private-key-file", "", "file of its private key")
}

const defaultBindAddress = "127.0.0.1"

// Complete fills in what is unset, and names the first flag that is wrong.
func (h *Health) Complete() error {
	h.BindAddress = cmp.Or(h.BindAddress, defaultBindAddress)
	switch {
	case net.ParseIP(h.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q is not an IP address: give one, such as :: or 127.0.0.1", h.BindAddress)
	case h.HealthPort < 0 || h.HealthPort > 65535:
		return fmt.Errorf("--health-port %d is not a port: give 1 to 65535, or 0 for no health server", h.HealthPort)
	case h.HealthPort != 0 && (h.TLSCertFile == "" || h.TLSPrivateKeyFile == ""):
		return errors.New("--health-port needs --tls-cert-file and --tls-private-key-file: the certificate to serve it with")
	}
	return nil
}

// Start listens, and lets the group serve: with a certificate that is read again when it changes, and metrics for the readers that the
// cluster lets read them. Without a port it does nothing. Errors name the flags.
func (h *Health) Start(ctx context.Context, group *errgroup.Group, ready func() error, registry prometheus.Gatherer, cluster *rest.Config, log *slog.Logger) error {
	if h.HealthPort == 0 {
		return nil
	}
	pair, err := source.NewKeyPair(h.TLSCertFile, h.TLSPrivateKeyFile, (*discovery.Recorder)(nil), log)
	if err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	listener, err := Listen(ctx, h.BindAddress, "--health-port", h.HealthPort)
	if err != nil {
		return err
	}
	handler := NewHealth(ready, registry, &MetricsReaders{Cluster: cluster, Anonymous: h.AnonymousMetrics})
	group.Go(func() error { return New("health", listener, handler, pair, log).Run(ctx) })
	group.Go(func() error { return pair.Run(ctx) })
	return nil
}

// Listen listens on a port, whose flag an error names.
func Listen(ctx context.Context, address, flag string, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("%s %d cannot be listened on, give another one (or another --bind-address): %w", flag, port, err)
	}
	return listener, nil
}

// NewRegistry returns the metrics of a program: at first those of Go and of its process.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
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
