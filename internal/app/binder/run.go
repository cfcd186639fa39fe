package binder

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/delivery/bindings"
)

// Config is what the binder needs.
type Config struct {
	Kubeconfig string // of the workload cluster; empty: the pod's own
	serving.Health
	Log *slog.Logger
}

// Run makes RoleBindings until ctx is done. An error is a configuration that cannot work.
func Run(ctx context.Context, config Config) error {
	if err := config.Health.Complete(); err != nil {
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
	if err := config.Health.Start(ctx, group, binder.Ready, serving.NewRegistry(), cluster, config.Log); err != nil {
		return err
	}
	group.Go(func() error { return binder.Run(ctx) })
	config.Log.Info("binder started")
	return serving.Wait(group, config.Log, "binder stopped")
}
