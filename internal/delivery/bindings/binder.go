package bindings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// Binder makes the RoleBindings in each namespace that tokens are delivered in. Several may run: the second finds the binding.
type Binder struct {
	manager manager.Manager
	log     *slog.Logger
	ready   chan struct{}
}

// NewBinder returns a Binder of a workload cluster. Nothing is read before it runs.
func NewBinder(cluster *rest.Config, log *slog.Logger) (*Binder, error) {
	scheme := runtime.NewScheme()
	_ = rbacv1.AddToScheme(scheme) // they only add types
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	m, err := manager.New(cluster, manager.Options{
		Scheme:         scheme,
		MapperProvider: mapper,
		Cache: cache.Options{
			ByObject: map[client.Object]cache.ByObject{
				&rbacv1.RoleBinding{}: {Field: fields.OneTermEqualSelector("metadata.name", rights.AgentSecrets)},
			},
			DefaultTransform: cache.TransformStripManagedFields(),
		},
		Logger:                 logr.FromSlogHandler(log.Handler()),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             controllerconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the cache of the workload cluster: %w", err)
	}
	b := &Binder{manager: m, log: log, ready: make(chan struct{})}
	return b, builder.ControllerManagedBy(m).Named("binder").
		For(newNamespace(), builder.WithPredicates(predicate.NewPredicateFuncs(func(namespace client.Object) bool { return rights.Delivered(namespace) }))).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, binding client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: binding.GetNamespace()}}}
		})).
		Complete(b)
}

// mapper knows the two resources, so that starting needs no answer of the API.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion})
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	return m, nil
}

// Only the metadata of namespaces is read and kept.
func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
}

// Run makes RoleBindings until ctx is done.
func (b *Binder) Run(ctx context.Context) error {
	go func() {
		if b.manager.GetCache().WaitForCacheSync(ctx) {
			close(b.ready)
		}
	}()
	if err := b.manager.Start(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("run the binder: %w", err)
	}
	return nil
}

// Ready returns why the binder can't do its work yet; nil once it has seen all namespaces.
func (b *Binder) Ready() error {
	select {
	case <-b.ready:
		return nil
	default:
		return errors.New("the namespaces of the workload cluster have not been read yet")
	}
}

// Reconcile looks at one namespace.
func (b *Binder) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := newNamespace()
	if err := b.manager.GetClient().Get(ctx, request.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !rights.Delivered(namespace) || namespace.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	secrets := rights.OfAgent(namespace.Name)
	err := b.manager.GetClient().Get(ctx, client.ObjectKeyFromObject(secrets), secrets)
	if err == nil {
		if !rights.LetDeliver(secrets) {
			b.log.WarnContext(ctx, "the agent can't deliver tokens in a namespace: its RoleBinding is not the binder's, and grants another right: delete it",
				"namespace", secrets.Namespace, "roleBinding", secrets.Name)
		}
	} else if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	} else if err := b.manager.GetClient().Create(ctx, secrets); err == nil {
		b.log.InfoContext(ctx, "the agent may have the Secrets of a namespace", "namespace", namespace.Name)
	} else if !apierrors.IsAlreadyExists(err) { // which is shown in a moment
		return reconcile.Result{}, fmt.Errorf("let the agent have the Secrets of namespace %s: %w", namespace.Name, err)
	}
	if namespace.Labels[v1alpha1.LabelNamespaceIdentities] != v1alpha1.NamespaceEnabled {
		return reconcile.Result{}, nil // none of its pods has identities
	}
	// The webhook's is not followed: without it a warning has no number of pods, until the namespace is looked at again.
	if err := b.manager.GetClient().Create(ctx, rights.OfWebhook(namespace.Name)); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("let the webhook list the pods of namespace %s: %w", namespace.Name, err)
	}
	return reconcile.Result{}, nil
}
