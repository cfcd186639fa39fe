// Package guards is the controller that keeps the policy credence-profile-pods affordable. In go the profiles of a namespace; those that the
// policy is not to be evaluated with get a label, and each gets the condition Enforced, which has what refuses its pods. It changes nothing
// else of a profile.
package guards

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/profiles"
)

// fieldManager is that of the condition Enforced.
const fieldManager = "credence-profiles-guards"

// Guards is the controller. It looks at all profiles of a namespace at once.
type Guards struct {
	client client.Client
}

// Register implements profiles.Controller.
func (g *Guards) Register(m manager.Manager) error {
	g.client = m.GetClient()
	if _, err := m.GetCache().GetInformer(context.Background(), profiles.Metadata("Namespace")); err != nil {
		return fmt.Errorf("follow namespaces: %w", err)
	}
	return builder.ControllerManagedBy(m).Named("guards").
		WatchesMetadata(profiles.Metadata("Namespace"), &handler.EnqueueRequestForObject{}).
		Watches(&accounts.ServiceAccountProfile{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, profile client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: profile.GetNamespace()}}}
		})).
		Complete(g)
}

// Reconcile looks at one namespace.
func (g *Guards) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := profiles.Metadata("Namespace")
	if err := g.client.Get(ctx, request.NamespacedName, namespace); err != nil || namespace.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var list accounts.ServiceAccountProfileList
	if err := g.client.List(ctx, &list, client.InNamespace(request.Name), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	left := toWebhook(list.Items)
	policy := namespace.Labels[accounts.LabelNamespaceProfiles] == accounts.NamespaceEnabled
	enabled := policy || namespace.Labels[v1alpha1.LabelNamespaceIdentities] == v1alpha1.NamespaceEnabled
	var errs []error
	for i := range list.Items {
		profile := &list.Items[i]
		errs = append(errs, g.label(ctx, profile, left.Has(profile.Name)), g.condition(ctx, profile, enforced(profile, enabled, policy, left.Has(profile.Name))))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// label has the policy leave a profile to the webhook, or not.
func (g *Guards) label(ctx context.Context, profile *accounts.ServiceAccountProfile, left bool) error {
	value, has := profile.Labels[accounts.LabelGuardedBy]
	if has == left && (!left || value == accounts.GuardedByWebhook) {
		return nil
	}
	wants := "null"
	if left {
		wants = `"` + accounts.GuardedByWebhook + `"`
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name}}
	object.SetGroupVersionKind(accounts.SchemeGroupVersion.WithKind("ServiceAccountProfile"))
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%s}}}`, profile.UID, accounts.LabelGuardedBy, wants))
	if err := g.client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label profile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	return nil
}

// condition writes the condition Enforced, unless it is so already.
func (g *Guards) condition(ctx context.Context, profile *accounts.ServiceAccountProfile, wants metav1.Condition) error {
	has := append([]metav1.Condition(nil), profile.Status.Conditions...)
	if !meta.SetStatusCondition(&has, wants) {
		return nil
	}
	own := *meta.FindStatusCondition(has, wants.Type)
	return profiles.ApplyStatus(ctx, g.client, profile, fieldManager, accounts.ServiceAccountProfileStatus{Conditions: []metav1.Condition{own}})
}
