package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/serving/eventing"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/delivery/selftokens"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/membership"
	"github.com/credence-id/credence/internal/workloadidentities"
)

// leaseName is the Lease that the leader holds, and the source of Events.
const leaseName = "credence-agent"

// Run delivers tokens until ctx is done. An error is a configuration that cannot work, or the loss of leadership.
func Run(ctx context.Context, config Config) error {
	config, err := config.complete()
	if err != nil {
		return serving.Usage(err)
	}
	// The libraries below log to our handler.
	logger := logr.FromSlogHandler(config.Log.Handler())
	controllerlog.SetLogger(logger)
	klog.SetLogger(logger)

	clusters, err := newClusters(config)
	if err != nil {
		return err
	}
	registry := serving.NewRegistry()
	parts, err := assemble(ctx, config, clusters, registry)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := config.Health.Start(ctx, group, parts.agent.Ready, registry, clusters.workload, config.Log); err != nil {
		return err
	}
	recorder := selftokens.NewRecorder(registry)
	if config.PodsPort != 0 {
		if err := servePods(ctx, group, config, clusters, parts, recorder); err != nil {
			return err
		}
	}
	group.Go(func() error { return parts.identities.Run(ctx) })
	group.Go(func() error { return parts.bindings.Run(ctx) })
	group.Go(func() error { return parts.keys.Run(ctx) })
	if parts.deliveries != nil {
		group.Go(func() error { return parts.deliveries.Run(ctx) })
	}
	group.Go(func() error { return parts.agent.Run(ctx) })
	if clusters.joined != "" {
		keeper := &membership.Keeper{Accounts: clusters.identityClient.CoreV1().ServiceAccounts(identityv1alpha1.WorkloadClusters), Store: membership.Folder(clusters.joined), Clock: clock.RealClock{}, Log: config.Log}
		if config.RenewInSecret {
			keeper.Store = membership.Secret{Secrets: clusters.workloadClient.CoreV1().Secrets(rights.SystemNamespace)}
		}
		group.Go(func() error { return keeper.Run(ctx) })
	}
	config.Log.Info("agent started", "renewFrom", config.Window.From, "renewTo", config.Window.To, "oneCluster", config.IdentityKubeconfig == "", "joined", clusters.joined != "")
	return serving.Wait(group, config.Log, "agent stopped")
}

// clusters are how the two clusters are reached; they may be one.
type clusters struct {
	workload, identity             *rest.Config
	workloadClient, identityClient kubernetes.Interface
	// joined is the folder of the credentials of a cluster that has joined the identity cluster, and name the name; empty: it has not.
	joined, name string
}

func newClusters(config Config) (clusters, error) {
	workload, err := clientConfig("--kubeconfig", config.Kubeconfig)
	if err != nil {
		return clusters{}, err
	}
	c := clusters{workload: workload, identity: workload}
	if config.IdentityKubeconfig != "" {
		if c.identity, err = clientConfig("--identity-kubeconfig", config.IdentityKubeconfig); err != nil {
			return clusters{}, err
		}
		if token, err := membership.Read(c.identity.BearerTokenFile); err == nil {
			c.joined, c.name = filepath.Dir(c.identity.BearerTokenFile), token.Secret.Name
		}
	}
	if c.workloadClient, err = kubernetes.NewForConfig(c.workload); err != nil {
		return clusters{}, fmt.Errorf("make client of the workload cluster: %w", err)
	}
	if c.identityClient, err = kubernetes.NewForConfig(c.identity); err != nil {
		return clusters{}, fmt.Errorf("make client of the identity cluster: %w", err)
	}
	return c, nil
}

// namesAccounts reports whether tokens name the service account that they are for.
func (c clusters) namesAccounts(config Config) bool {
	return config.IdentityKubeconfig == "" || c.joined != ""
}

func clientConfig(flag, kubeconfig string) (*rest.Config, error) {
	config, err := serving.Cluster(flag, kubeconfig, "agent")
	if err != nil {
		return nil, err
	}
	// The number of requests is bounded by the number of Secrets renewed at once.
	config.QPS = -1
	return config, nil
}

// parts are what runs.
type parts struct {
	agent      *delivery.Agent
	identities *workloadidentities.Follower
	bindings   *workloadidentities.Bindings
	tokens     *workloadidentities.Issuer
	keys       *workloadidentities.Revocations
	deliveries *workloadidentities.Deliveries // nil: the identities are of the workload cluster itself
}

func assemble(ctx context.Context, config Config, c clusters, registry prometheus.Registerer) (*parts, error) {
	p := &parts{}
	var err error
	// Nothing changes before they run, and by then there is an agent to tell.
	if p.identities, err = workloadidentities.New(c.identity, func(name types.NamespacedName) { p.agent.IdentityChanged(name) }); err != nil {
		return nil, err
	}
	if p.bindings, err = workloadidentities.NewBindings(c.identity, func(name types.NamespacedName) { p.agent.BindingChanged(name) }); err != nil {
		return nil, err
	}
	if p.keys, err = workloadidentities.NewRevocations(c.identity, func() { p.agent.KeysRevoked() }, config.Log); err != nil {
		return nil, err
	}
	var deliveries contexts.Deliveries
	if config.IdentityKubeconfig != "" {
		p.deliveries, err = workloadidentities.NewDeliveries(c.identity, c.name, func(d *identityv1alpha1.ContextDelivery) { p.agent.DeliveryChanged(d) }, func() { p.agent.DeliveriesKnown() }, config.Log)
		if err != nil {
			return nil, err
		}
		deliveries = p.deliveries
	}
	if p.tokens, err = workloadidentities.NewIssuer(c.identity); err != nil {
		return nil, err
	}
	events := func(client kubernetes.Interface) record.EventRecorder {
		return eventing.NewRecorder(ctx, client, leaseName, v1alpha1.AddToScheme)
	}
	p.agent, err = delivery.New(delivery.Config{
		Workload: c.workload, Identities: p.identities, Bindings: p.bindings, Tokens: p.tokens, Data: p.tokens, Reports: p.tokens, Uses: workloadidentities.BindingReports{Issuer: p.tokens}, Keys: p.keys, Deliveries: deliveries,
		Reviews:  authority.Cluster(c.workloadClient.AuthorizationV1().SubjectAccessReviews()),
		Events:   workload.Events{Workload: events(c.workloadClient), Identity: events(c.identityClient)},
		Registry: registry, Namespaces: config.Namespaces, Delivery: config.Delivery, NamesAccounts: c.namesAccounts(config), Window: config.Window, Duration: config.Duration, Concurrency: config.Concurrency,
		Lease:  types.NamespacedName{Namespace: config.LeaseNamespace, Name: leaseName},
		Random: rand.Float64, Log: config.Log,
	})
	return p, err
}
