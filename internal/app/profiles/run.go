package profiles

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/eventing"
	apicluster "github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/internal/profiles"
	"github.com/credence-id/credence/internal/profiles/drift"
	"github.com/credence-id/credence/internal/profiles/guards"
	"github.com/credence-id/credence/internal/profiles/namespaces"
)

// Config is what the program needs.
type Config struct {
	Kubeconfig string // of the workload cluster; empty: the pod's own
	// IdentityKubeconfig is of the cluster of the workload identities; empty: they are in the workload cluster.
	IdentityKubeconfig string
	LeaseNamespace     string // empty: credence-system
	UsernameTemplate   string // empty: username.DefaultTemplate
	ClusterName        string // empty: the uid of the namespace kube-system
	Drift              drift.Periods
	serving.Health
	Log *slog.Logger
}

const (
	defaultLeaseNamespace = "credence-system"
	requestsPerSecond     = 50 // a template of 200 namespaces makes 1,000 objects
)

// component is the name of the Lease that the leader holds, and the source of Events.
const component = "credence-profiles"

// Run runs the controllers until ctx is done. An error is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	if err := config.Health.Complete(); err != nil {
		return serving.Usage(err)
	}
	if err := config.Drift.Validate(); err != nil {
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
	cluster.QPS, cluster.Burst = requestsPerSecond, 2*requestsPerSecond
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make client of the workload cluster: %w", err)
	}
	usernames, err := config.usernames(ctx, client.CoreV1())
	if err != nil {
		return err
	}
	// Requests that write about pods count as those that read them do.
	looks := newLimiter()
	both, err := clusters(cluster, config.IdentityKubeconfig, looks)
	if err != nil {
		return err
	}
	registry := serving.NewRegistry()
	process, err := profiles.New(profiles.Config{
		Cluster:     cluster,
		Lease:       types.NamespacedName{Namespace: cmp.Or(config.LeaseNamespace, defaultLeaseNamespace), Name: component},
		Controllers: controllers(eventing.NewRecorder(ctx, client, component, accounts.AddToScheme), registry, both, looks, config.Drift, usernames, config.Log),
		Followed:    namespaces.Followed(),
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
	return serving.Wait(group, config.Log, "profiles stopped")
}

// startupTimeout bounds the requests to the cluster before controllers run.
const startupTimeout = 30 * time.Second

// usernames returns the template that gives accounts their names outside of the cluster.
func (c Config) usernames(ctx context.Context, client corev1client.NamespacesGetter) (username.Template, error) {
	text := cmp.Or(c.UsernameTemplate, username.DefaultTemplate)
	name := c.ClusterName
	if name == "" && strings.Contains(text, "{cluster}") {
		ctx, cancel := context.WithTimeout(ctx, startupTimeout)
		defer cancel()
		namespace, err := client.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return username.Template{}, fmt.Errorf("find the name of the cluster, the uid of namespace %s: %w; or set --cluster-name", metav1.NamespaceSystem, err)
		}
		name = string(namespace.UID)
	}
	template, err := username.Parse(text, name)
	if err != nil {
		return template, serving.Usage(fmt.Errorf("--username-template, --cluster-name: %w", err))
	}
	return template, nil
}

// controllers are all that run.
func controllers(events record.EventRecorder, registry prometheus.Registerer, both apicluster.Both, looks flowcontrol.RateLimiter, periods drift.Periods, usernames username.Template, log *slog.Logger) []profiles.Controller {
	return []profiles.Controller{
		&profiles.Statuses{Usernames: usernames, Events: events, Metrics: registry, Log: log},
		&guards.Guards{},
		&namespaces.Controller{Log: log, Now: time.Now},
		&drift.Controller{Clusters: both, Limiter: looks, Periods: periods, Events: events, Recorder: drift.NewRecorder(registry), Clock: clock.RealClock{}, Log: log},
	}
}

// clusters are the two in which pods are looked at, with a bound of requests within a second.
func clusters(workload *rest.Config, identityKubeconfig string, looks flowcontrol.RateLimiter) (apicluster.Both, error) {
	open := func(config *rest.Config, limiter flowcontrol.RateLimiter) (*apicluster.API, error) {
		config = rest.CopyConfig(config)
		config.RateLimiter, config.Timeout = limiter, lookTimeout
		return apicluster.New(config)
	}
	api, err := open(workload, looks)
	if err != nil || identityKubeconfig == "" {
		return apicluster.Both{Workload: api, Identity: api}, err
	}
	identity, err := serving.Cluster("--identity-kubeconfig", identityKubeconfig, "profiles")
	if err != nil {
		return apicluster.Both{}, err
	}
	other, err := open(identity, newLimiter())
	return apicluster.Both{Workload: api, Identity: other}, err
}

func newLimiter() flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(lookQPS, lookBurst)
}

// A look at pods sends at most fifty requests within a second, and waits for none longer than lookTimeout.
const (
	lookQPS     = 40
	lookBurst   = 10
	lookTimeout = 30 * time.Second
)
