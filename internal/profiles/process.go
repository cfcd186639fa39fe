package profiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Controller is one part of the process.
type Controller interface {
	// Register adds it to a manager, whose client reads from a cache. Its work begins once this replica leads, and ends when it does
	// so no longer.
	Register(m manager.Manager) error
}

// Config is what the process needs.
type Config struct {
	// Cluster is that of the service accounts.
	Cluster *rest.Config
	// Lease is the Lease by which replicas elect the one that works.
	Lease       types.NamespacedName
	Controllers []Controller
	// Followed narrows which objects of some kinds are followed.
	Followed map[client.Object]cache.ByObject
	Log      *slog.Logger
}

// Process runs controllers.
type Process struct {
	manager manager.Manager
	ready   chan struct{}
}

// New returns a Process. Nothing is read before it runs.
func New(config Config) (*Process, error) {
	m, err := manager.New(config.Cluster, manager.Options{
		Scheme:         scheme(),
		MapperProvider: mapper,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject:         config.Followed,
		},
		Logger:                        logr.FromSlogHandler(config.Log.Handler()),
		LeaderElection:                true,
		LeaderElectionNamespace:       config.Lease.Namespace,
		LeaderElectionID:              config.Lease.Name,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		Controller:                    controllerconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the cache of the cluster: %w", err)
	}
	for _, controller := range config.Controllers {
		if err := controller.Register(m); err != nil {
			return nil, err
		}
	}
	return &Process{manager: m, ready: make(chan struct{})}, nil
}

// Run runs the controllers until ctx is done, while this replica leads. An error is the loss of leadership, too.
func (p *Process) Run(ctx context.Context) error {
	go func() {
		if p.manager.GetCache().WaitForCacheSync(ctx) {
			close(p.ready)
		}
	}()
	if err := p.manager.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// Ready returns nil once the process has seen all objects, and until then the reason.
func (p *Process) Ready() error {
	select {
	case <-p.ready:
		return nil
	default:
		return errors.New("the profiles and service accounts of the cluster have not been read yet")
	}
}
