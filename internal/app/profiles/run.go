package profiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/profiles"
	"github.com/credence-id/credence/internal/profiles/guards"
	"github.com/credence-id/credence/internal/profiles/namespaces"
)

// Config is what the program needs.
type Config struct {
	Kubeconfig     string // of the workload cluster; empty: the pod's own
	LeaseNamespace string // empty: credence-system
	serving.Health
	Log *slog.Logger
}

const defaultLeaseNamespace = "credence-system"

// component is the name of the Lease that the leader holds, and the source of Events.
const component = "credence-profiles"

// Run runs the controllers until ctx is done. An error is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	if err := config.Health.Complete(); err != nil {
		return serving.Usage(err)
	}
	// The libraries below log to our handler.
	logger := logr.FromSlogHandler(config.Log.Handler())
	controllerlog.SetLogger(logger)
	klog.SetLogger(logger)
	cluster, err := serving.Cluster("--kubeconfig", config.Kubeconfig, "profiles")
	if err != nil {
		return err
	}
	cluster.QPS, cluster.Burst = 50, 100 // a template of 200 namespaces makes 1,000 objects
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make client of the workload cluster: %w", err)
	}
	registry := serving.NewRegistry()
	process, err := profiles.New(profiles.Config{
		Cluster:     cluster,
		Lease:       types.NamespacedName{Namespace: cmp.Or(config.LeaseNamespace, defaultLeaseNamespace), Name: component},
		Controllers: controllers(startEvents(ctx, client), registry, config),
		Log:         config.Log,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := config.Health.Start(ctx, group, process.Ready, registry, cluster, config.Log); err != nil {
		return err
	}
	group.Go(func() error { return process.Run(ctx) })
	config.Log.Info("profiles started")
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	config.Log.Info("profiles stopped")
	return nil
}

// controllers are all that run.
func controllers(events record.EventRecorder, registry prometheus.Registerer, config Config) []profiles.Controller {
	return []profiles.Controller{
		&profiles.Statuses{Events: events, Log: config.Log},
		&guards.Guards{},
		&namespaces.Controller{Log: config.Log, Now: time.Now},
	}
}

// startEvents writes Events until ctx is done.
func startEvents(ctx context.Context, client kubernetes.Interface) record.EventRecorder {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // they only add the types that the recorder must name
	_ = accounts.AddToScheme(scheme)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events("")})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
}
