package binder

import (
	"context"
	"errors"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/bindings"
)

// Config is what the binder needs.
type Config struct {
	Kubeconfig string // of the workload cluster; empty: the pod's own
	Health     serving.HealthPort
	// AnonymousMetrics answers /metrics to all.
	AnonymousMetrics bool
	Log              *slog.Logger
}

// Run makes RoleBindings until ctx is done. An error is a configuration that cannot work.
func Run(ctx context.Context, config Config) error {
	if err := config.Health.Check(); err != nil {
		return serving.Usage(err)
	}
	// The libraries below log to our handler.
	logger := logr.FromSlogHandler(config.Log.Handler())
	controllerlog.SetLogger(logger)
	klog.SetLogger(logger)
	cluster, err := serving.Cluster("--kubeconfig", config.Kubeconfig, "binder")
	if err != nil {
		return err
	}
	binder, err := bindings.NewBinder(cluster, config.Log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if config.Health.Port != 0 {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		server, pair, err := config.Health.Open(ctx, serving.NewHealth(binder.Ready, registry, &serving.MetricsReaders{Cluster: cluster, Anonymous: config.AnonymousMetrics}), config.Log)
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Run(ctx) })
		group.Go(func() error { return pair.Run(ctx) })
	}
	group.Go(func() error { return binder.Run(ctx) })
	config.Log.Info("binder started")
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	config.Log.Info("binder stopped")
	return nil
}
