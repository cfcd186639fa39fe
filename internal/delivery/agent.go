package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/delivery/secrets"
	"github.com/credence-id/credence/internal/delivery/secretwatch"
	"github.com/credence-id/credence/internal/delivery/workers"
	"github.com/credence-id/credence/internal/delivery/workload"
)

// Config is what the agent needs. All fields but the first group work at their zero value.
type Config struct {
	// Workload is the cluster of the Secrets, service accounts and pods.
	Workload   *rest.Config
	Identities Identities
	Bindings   Bindings
	Tokens     secrets.Tokens
	Data       secrets.Data
	Keys       secrets.Keys
	// Deliveries are what the identity cluster wants delivered for its context objects; nil: nothing.
	Deliveries contexts.Deliveries
	Reviews    authority.Reviewer
	// Reports, if not nil, takes reports for the status of identities.
	Reports reports.Sender
	// Uses, if not nil, takes reports for the status of bindings.
	Uses     reports.Sender
	Events   workload.Events
	Registry prometheus.Registerer

	// NamesAccounts reports whether tokens can have a service account of the workload cluster as their context: the identities are of this
	// cluster, or the identity cluster knows it as a WorkloadCluster.
	NamesAccounts bool
	// Delivery is how tokens come to pods of namespaces without the label for it; empty: by Secrets.
	Delivery string
	// Namespaces are those of the workload cluster that are looked at; empty: all, and Secrets where a RoleBinding of package
	// bindings lets them be read.
	Namespaces []string
	// Window is when tokens are renewed; zero: 60 to 80 % of their lifetime.
	Window renewal.Window
	// Duration is the requested lifetime of tokens; zero: the default of the server.
	Duration time.Duration
	// Concurrency is how many Secrets are renewed at once; zero: 8.
	Concurrency int
	// Lease is the Lease by which replicas elect a leader; empty: no election.
	Lease types.NamespacedName

	Clock  clock.PassiveClock // nil: the machine's
	Random func() float64     // uniform in [0, 1)
	Log    *slog.Logger       // nil: slog.Default()
}

// Identities finds identities of the identity cluster. Its errors are those of the API.
type Identities interface {
	secrets.Identities
	// Retain drops all namespaces but those that keep reports.
	Retain(keep func(namespace string) bool)
}

// Bindings finds CredentialsBindings of the identity cluster. Its errors are those of the API.
type Bindings interface {
	secrets.Bindings
	// Each shows the bindings of all namespaces that are followed.
	Each(visit func(*v1alpha1.CredentialsBinding))
	// Retain drops all namespaces but those that keep reports.
	Retain(keep func(namespace string) bool)
}

const defaultConcurrency = 8

// Agent is the controllers of the agent.
type Agent struct {
	controllers Controllers
	manager     manager.Manager
	identities  Identities
	bindings    Bindings
	watch       *secretwatch.Cache // nil: of fixed namespaces
	namespaces  []string           // these
	delivery    string             // of namespaces without the label for it
	secrets     workers.Queue      // of secrets.Controller
	wanted      workers.Queue      // of contexts.Controller
	services    workers.Queue      // of accounts.Controller
	pods        workers.Queue      // of gates.Controller
	served      workers.Queue      // of bindings.Release
	ready       chan struct{}
}

// New returns an Agent. Nothing is read before it runs.
func New(config Config) (*Agent, error) {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Random == nil {
		return nil, errors.New("the agent needs a source of randomness")
	}
	config.Concurrency = cmp.Or(config.Concurrency, defaultConcurrency)
	window, err := config.Window.Complete()
	if err != nil {
		return nil, err
	}
	config.Window = window
	agent := &Agent{identities: config.Identities, bindings: config.Bindings, namespaces: config.Namespaces, delivery: config.Delivery, ready: make(chan struct{})}
	if agent.manager, err = manager.New(config.Workload, agent.options(config)); err != nil {
		return nil, fmt.Errorf("prepare the caches of the workload cluster: %w", err)
	}
	agent.controllers = NewControllers(config, Cluster{
		Client: agent.manager.GetClient(), Live: agent.manager.GetAPIReader(), Pods: accounts.PodsOf(agent.manager.GetAPIReader()),
		Serves: agent.serves, QueueSecret: agent.secrets.Add, QueueAccount: agent.services.Add,
	})
	config.Registry.MustRegister(agent.controllers.Recorder)
	return agent, agent.register(config)
}

func (a *Agent) options(config Config) manager.Options {
	options := manager.Options{
		Scheme:                        scheme(),
		MapperProvider:                mapper,
		Cache:                         cacheOptions(config.Namespaces),
		Client:                        client.Options{Cache: &client.CacheOptions{}},
		Logger:                        logr.FromSlogHandler(config.Log.Handler()),
		LeaderElection:                config.Lease.Name != "",
		LeaderElectionNamespace:       config.Lease.Namespace,
		LeaderElectionID:              config.Lease.Name,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		Controller:                    controllerconfig.Controller{SkipNameValidation: new(true)},
	}
	if len(config.Namespaces) == 0 {
		options.NewCache = func(cluster *rest.Config, o cache.Options) (cache.Cache, error) {
			var err error
			a.watch, err = secretwatch.New(secretwatch.Config{Binding: rights.AgentSecrets, Selector: requestors().String(), Served: a.namespaceServed}, cluster, o)
			return a.watch, err
		}
	}
	return options
}

// serves reports whether the agent has the Secrets of a namespace.
func (a *Agent) serves(namespace string) bool {
	if a.watch == nil {
		return slices.Contains(a.namespaces, namespace)
	}
	return a.watch.Serves(namespace)
}

// Run runs the controllers until ctx is done.
func (a *Agent) Run(ctx context.Context) error {
	go func() {
		if a.manager.GetCache().WaitForCacheSync(ctx) {
			close(a.ready)
			a.giveBack(ctx)
		}
	}()
	go a.retain(ctx)
	for _, each := range []*reports.Reporter{a.controllers.Secrets.Reports, a.controllers.Secrets.Uses} {
		if each != nil {
			go each.Run(ctx)
		}
	}
	if err := a.manager.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// lookAgain is how often giveBack looks whether the first work is done.
const lookAgain = 5 * time.Second

// giveBack gives memory back to the system once all Secrets have been looked at: no later work needs as much at once, and what
// the program does not use would stay with it for minutes.
func (a *Agent) giveBack(ctx context.Context) {
	err := wait.PollUntilContextCancel(ctx, lookAgain, false, func(context.Context) (bool, error) { return a.secrets.Done(), nil })
	if err == nil {
		debug.FreeOSMemory()
	}
}

// Ready returns nil once the agent has seen all objects, and until then the reason.
func (a *Agent) Ready() error {
	select {
	case <-a.ready:
		return nil
	default:
		return errors.New("the Secrets of the workload cluster have not been read yet")
	}
}

// cacheOptions keep in memory what the controllers need, and no more: labelled Secrets, pods that are not scheduled, and the
// metadata of service accounts and namespaces.
func cacheOptions(namespaces []string) cache.Options {
	options := cache.Options{ByObject: byObject(), DefaultTransform: cache.TransformStripManagedFields()}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}
