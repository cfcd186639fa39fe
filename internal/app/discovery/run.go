package discovery

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/discovery/source"
	"github.com/credence-id/credence/internal/identity"
)

// Run serves the documents until ctx is done, then answers the requests in flight and returns nil. An error is a
// configuration that cannot work, or a server that stopped by itself.
func Run(ctx context.Context, config Config) error {
	config = config.complete()
	if err := config.validate(); err != nil {
		return serving.Usage(err)
	}
	issuer, err := identity.ParseIssuer(config.Issuer)
	if err != nil {
		return serving.Usage(fmt.Errorf("--issuer: %w", err))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	recorder := discovery.NewRecorder(registry, config.Now)
	handler := discovery.NewHandler(discovery.Settings{Issuer: issuer, MaxAge: config.MaxAge, Recorder: recorder, Now: config.Now})

	documents, err := newSource(config)
	if err != nil {
		return err
	}
	pair, err := source.NewKeyPair(config.TLSCertFile, config.TLSPrivateKeyFile, recorder, config.Log)
	if err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	servers, err := listen(ctx, config, pair, handler, registry)
	if err != nil {
		return err
	}
	config.Log.Info("discovery server started", "issuer", issuer, "configuration", issuer.ConfigurationURL(), "jwks", issuer.JWKSURL())

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return documents.Run(ctx, handler) })
	group.Go(func() error { return pair.Run(ctx) })
	for _, server := range servers {
		group.Go(func() error { return server.Run(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	config.Log.Info("discovery server stopped")
	return nil
}

// documentsSource is the one need of this program that has two answers.
type documentsSource interface {
	Run(ctx context.Context, publisher source.Publisher) error
}

func newSource(config Config) (documentsSource, error) {
	if config.DocumentsDir != "" {
		return source.Directory{Path: config.DocumentsDir, Log: config.Log}, nil
	}
	namespace, name, err := splitName(config.DocumentsConfigMap)
	if err != nil {
		return nil, err
	}
	client, err := clientConfig(config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client.UserAgent = "credence-server/discovery"
	return source.NewConfigMap(client, namespace, name, config.DocumentsCache, config.Log)
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig is missing and this is not a pod of a cluster (%w): give the kubeconfig of the API that has the ConfigMap", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// listen opens all ports before anything runs, so that a busy one is an error at start.
func listen(ctx context.Context, config Config, pair *source.KeyPair, handler *discovery.Handler, registry *prometheus.Registry) ([]*serving.Server, error) {
	var servers []*serving.Server
	add := func(name, flag string, port int, listener net.Listener, handler http.Handler) error {
		if listener == nil {
			address := net.JoinHostPort(config.BindAddress, strconv.Itoa(port))
			var err error
			if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address); err != nil {
				return fmt.Errorf("%s %d cannot be listened on, give another one (or another --bind-address): %w", flag, port, err)
			}
		}
		servers = append(servers, serving.New(name, listener, handler, pair, config.Log))
		return nil
	}
	err := add("documents", "--port", config.Port, config.Listener, handler)
	if err == nil && (config.HealthPort != 0 || config.HealthListener != nil) {
		err = add("health", "--health-port", config.HealthPort, config.HealthListener, serving.NewHealth(readiness(handler), registry))
	}
	if err != nil {
		for _, server := range servers {
			server.Close()
		}
		return nil, err
	}
	return servers, nil
}
