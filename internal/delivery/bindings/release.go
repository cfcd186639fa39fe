package bindings

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// Release gives the right to the Secrets of a namespace back that has lost its label, as soon as no Secret carries tokens there.
type Release struct {
	// Serves reports whether the agent has that right.
	Serves func(namespace string) bool
	Log    *slog.Logger

	cached   client.Reader
	live     client.Reader
	bindings rbacv1client.RoleBindingsGetter
}

// Register adds it to the controllers of the agent, whose cache has metadata of namespaces, and labelled Secrets. From served come the
// namespaces that Serves reports from now on.
func (r *Release) Register(m manager.Manager, served source.Source) error {
	bindings, err := rbacv1client.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make client for RoleBindings: %w", err)
	}
	r.cached, r.live, r.bindings = m.GetClient(), m.GetAPIReader(), bindings
	return builder.ControllerManagedBy(m).Named("bindings").
		For(newNamespace(), builder.WithPredicates(predicate.NewPredicateFuncs(func(namespace client.Object) bool { return !rights.Delivered(namespace) }))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: secret.GetNamespace()}}}
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WatchesRawSource(served).
		Complete(r)
}

// Reconcile looks at one namespace.
func (r *Release) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := newNamespace()
	if err := r.cached.Get(ctx, request.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if rights.Delivered(namespace) || namespace.DeletionTimestamp != nil || !r.Serves(namespace.Name) {
		return reconcile.Result{}, nil // one that is not served is looked at again once it is
	}
	// A live list: the cache may not show the last write yet.
	secrets := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
	if err := r.live.List(ctx, secrets, client.InNamespace(namespace.Name), client.Limit(1),
		client.MatchingLabels{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}); err != nil {
		return reconcile.Result{}, fmt.Errorf("look for Secrets with tokens in namespace %s: %w", namespace.Name, err)
	}
	if len(secrets.Items) > 0 {
		return reconcile.Result{}, nil // looked at again when one goes
	}
	// The agent's own goes last: without it, the namespace is not looked at again.
	for _, name := range []string{rights.WebhookPods, rights.AgentSecrets} {
		if err := r.bindings.RoleBindings(namespace.Name).Delete(ctx, name, metav1.DeleteOptions{}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete RoleBinding %s, as no tokens are delivered in namespace %s any more: %w", name, namespace.Name, err)
		}
	}
	r.Log.InfoContext(ctx, "the right to the Secrets of a namespace was given back", "namespace", namespace.Name)
	return reconcile.Result{}, nil
}
