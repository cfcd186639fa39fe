package discovery

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

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
	registry := serving.NewRegistry()
	recorder := discovery.NewRecorder(registry, config.Now)
	handler := discovery.NewHandler(discovery.Settings{Issuer: issuer, MaxAge: config.MaxAge, Recorder: recorder, Now: config.Now})

	cluster, err := clientConfig(config)
	if err != nil {
		return err
	}
	documents, err := newSource(config, cluster)
	if err != nil {
		return err
	}
	pair, err := source.NewKeyPair(config.TLSCertFile, config.TLSPrivateKeyFile, recorder, config.Log)
	if err != nil {
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	servers, err := listen(ctx, config, pair, handler, serving.NewHealth(readiness(handler), registry, &serving.MetricsReaders{Cluster: cluster, Anonymous: config.AnonymousMetrics}))
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

func newSource(config Config, cluster *rest.Config) (documentsSource, error) {
	if config.DocumentsDir != "" {
		return source.Directory{Path: config.DocumentsDir, Log: config.Log}, nil
	}
	namespace, name, err := splitName(config.DocumentsConfigMap)
	if err != nil {
		return nil, err
	}
	return source.NewConfigMap(cluster, namespace, name, config.DocumentsCache, config.Log)
}

// clientConfig is how the API with the ConfigMap is reached; nil with a folder of documents.
func clientConfig(config Config) (*rest.Config, error) {
	if config.DocumentsConfigMap == "" {
		return nil, nil
	}
	return serving.Cluster("--kubeconfig", config.Kubeconfig, "discovery")
}

// listen opens all ports before anything runs, so that a busy one is an error at start.
func listen(ctx context.Context, config Config, pair *source.KeyPair, handler, health http.Handler) ([]*serving.Server, error) {
	var servers []*serving.Server
	add := func(name, flag string, port int, listener net.Listener, handler http.Handler) error {
		if listener == nil {
			var err error
			if listener, err = serving.Listen(ctx, config.BindAddress, flag, port); err != nil {
				return err
			}
		}
		servers = append(servers, serving.New(name, listener, handler, pair, config.Log))
		return nil
	}
	err := add("documents", "--port", config.Port, config.Listener, handler)
	if err == nil && (config.HealthPort != 0 || config.HealthListener != nil) {
		err = add("health", "--health-port", config.HealthPort, config.HealthListener, health)
	}
	if err != nil {
		for _, server := range servers {
			server.Close()
		}
		return nil, err
	}
	return servers, nil
}
