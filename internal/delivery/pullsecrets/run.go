package pullsecrets

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
	"github.com/credence-id/credence/internal/delivery/secretwatch"
	"github.com/credence-id/credence/internal/delivery/workers"
)

// concurrency is how many Secrets are looked at once: registries that do not answer take a while each.
const concurrency = 32

// Keeper runs a Controller for the Secrets of a cluster.
type Keeper struct {
	manager manager.Manager
	ready   chan struct{}
}

// New returns a Keeper; Client of the needs is its own. Of several replicas, that with the Lease works. Nothing is read before it runs.
func New(cluster *rest.Config, lease types.NamespacedName, needs Needs) (*Keeper, error) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme) // it only adds types
	made, err := manager.New(cluster, manager.Options{
		Scheme: scheme,
		// It knows the one resource that is used, so that starting needs no answer of the API.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
			m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
			return m, nil
		},
		NewCache: func(cluster *rest.Config, o cache.Options) (cache.Cache, error) {
			return secretwatch.New(secretwatch.Config{
				Binding:  rights.RegistrySecrets,
				Selector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}).String(),
				Fields:   fields.OneTermEqualSelector("type", string(corev1.SecretTypeDockerConfigJson)).String(),
			}, cluster, o)
		},
		Logger:                        logr.FromSlogHandler(needs.Log.Handler()),
		LeaderElection:                true,
		LeaderElectionNamespace:       lease.Namespace,
		LeaderElectionID:              lease.Name,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		Controller:                    controllerconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the cache of Secrets: %w", err)
	}
	needs.Client = made.GetClient()
	queue := &workers.Queue{}
	return &Keeper{made, make(chan struct{})}, builder.ControllerManagedBy(made).Named("pullsecrets").
		For(&corev1.Secret{}).
		WatchesRawSource(source.Func(queue.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(shared(needs, queue))
}

// shared is a Controller whose workers no namespace has alone: its registries may all hang.
func shared(needs Needs, queue *workers.Queue) reconcile.Reconciler {
	return workers.Fair(&Controller{needs}, needs.Clock, concurrency, queue.Add)
}

// Run runs the Controller until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	go func() {
		if k.manager.GetCache().WaitForCacheSync(ctx) {
			close(k.ready)
		}
	}()
	if err := k.manager.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("keep the passwords of registries: %w", err)
	}
	return nil
}

// Ready returns nil once all Secrets have been seen, and until then the reason.
func (k *Keeper) Ready() error {
	select {
	case <-k.ready:
		return nil
	default:
		return errors.New("the Secrets of the cluster have not been read yet")
	}
}
