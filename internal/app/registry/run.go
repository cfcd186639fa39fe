package registry

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/eventing"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/pullsecrets"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/registry"
)

// Config is what the program needs.
type Config struct {
	Registries     string
	Kubeconfig     string // of the cluster of the Secrets; empty: the pod's own
	Window         renewal.Window
	LeaseNamespace string
	serving.Health
	Log *slog.Logger
}

// Run keeps passwords until ctx is done. An error is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	registries := registry.File(config.Registries)
	if _, err := registries.Read(); err != nil {
		return serving.Usage(fmt.Errorf("--registries: %w", err))
	}
	var err error
	if config.Window, err = config.Window.Complete(); err != nil {
		return serving.Usage(fmt.Errorf("--renew-from, --renew-to: %w", err))
	}
	if err := config.Health.Complete(); err != nil {
		return serving.Usage(err)
	}
	// The libraries below log to our handler.
	logger := logr.FromSlogHandler(config.Log.Handler())
	controllerlog.SetLogger(logger)
	klog.SetLogger(logger)
	cluster, err := serving.Cluster("--kubeconfig", config.Kubeconfig, "registry")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make client of the cluster: %w", err)
	}
	recorder := pullsecrets.NewRecorder(clock.RealClock{})
	metrics := serving.NewRegistry()
	metrics.MustRegister(recorder)
	keeper, err := pullsecrets.New(cluster, types.NamespacedName{Namespace: config.LeaseNamespace, Name: rights.RegistryAccount}, pullsecrets.Needs{
		Registries: registries.Read, Reviews: authority.Cluster(client.AuthorizationV1().SubjectAccessReviews()), Window: config.Window,
		Clock: clock.RealClock{}, Random: rand.Float64, Events: eventing.NewRecorder(ctx, client, rights.RegistryAccount), Recorder: recorder, Log: config.Log,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := config.Health.Start(ctx, group, keeper.Ready, metrics, cluster, config.Log); err != nil {
		return err
	}
	group.Go(func() error { return keeper.Run(ctx) })
	config.Log.Info("registry started", "registries", config.Registries)
	return serving.Wait(group, config.Log, "registry stopped")
}
