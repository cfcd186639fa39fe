package accounts

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/workload"
	"github.com/credence-id/credence/internal/tokensecret"
)

// Index is that of cached Secrets by the name of the service account that owns them.
const Index = "account"

// IndexValues are the values of Index of a Secret.
func IndexValues(secret client.Object) []string {
	if account, _, ok := workload.AccountOf(secret); ok {
		return []string{account.Name}
	}
	return nil
}

// secrets returns the Secrets that the agent keeps for an account, by the name of their identity.
func (a *Controller) secrets(ctx context.Context, account *metav1.PartialObjectMetadata) (map[string]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := a.Client.List(ctx, &list, client.InNamespace(account.Namespace), client.MatchingFields{Index: account.Name}); err != nil {
		return nil, err
	}
	kept := map[string]*corev1.Secret{}
	for i := range list.Items {
		secret := &list.Items[i]
		_, uid, _ := workload.AccountOf(secret)
		name := secret.Annotations[v1alpha1.AnnotationName]
		if uid == account.UID && secret.DeletionTimestamp == nil && secret.Name == tokensecret.NameFor(account.Name, name) {
			kept[name] = secret
		}
	}
	return kept, nil
}

// create makes the Secrets that are missing.
func (a *Controller) create(ctx context.Context, account *metav1.PartialObjectMetadata, wanted []string, kept map[string]*corev1.Secret) []problem {
	var problems []problem
	for _, name := range wanted {
		if kept[name] != nil {
			continue
		}
		if p := a.createOne(ctx, account, types.NamespacedName{Namespace: account.Namespace, Name: name}, ""); p != nil {
			problems = append(problems, *p)
			a.announce(ctx, client.ObjectKeyFromObject(account), name, *p)
		}
	}
	return problems
}

// announce reports why a Secret is missing in the status of its identity: pods wait for it. Once it is there, its own state takes the place.
func (a *Controller) announce(ctx context.Context, account types.NamespacedName, identity string, p problem) {
	name := types.NamespacedName{Namespace: account.Namespace, Name: identity}
	wi, err := a.Identities.Get(ctx, name.Namespace, name.Name)
	if err != nil {
		return
	}
	names, _ := a.missing.LoadOrStore(account, map[string]struct{}{})
	names.(map[string]struct{})[identity] = struct{}{}
	a.Reports.Set(secretOf(account, identity), reports.Secret{Identity: name, UID: wi.UID, Reason: p.reason, Message: p.message})
}

// withdraw takes back what was reported of Secrets that an account does not need any more.
func (a *Controller) withdraw(account types.NamespacedName, wanted []string, kept map[string]*corev1.Secret) {
	names, _ := a.missing.LoadOrStore(account, map[string]struct{}{})
	for identity := range names.(map[string]struct{}) {
		if kept[identity] != nil {
			delete(names.(map[string]struct{}), identity)
		} else if !slices.Contains(wanted, identity) {
			delete(names.(map[string]struct{}), identity)
			a.Reports.Remove(secretOf(account, identity))
		}
	}
	if len(names.(map[string]struct{})) == 0 {
		a.missing.Delete(account)
	}
}

func secretOf(account types.NamespacedName, identity string) types.NamespacedName {
	return types.NamespacedName{Namespace: account.Namespace, Name: tokensecret.NameFor(account.Name, identity)}
}

// createOne makes a Secret, if the account may use the identity. released is the mark of one that it has released; empty: none.
func (a *Controller) createOne(ctx context.Context, account *metav1.PartialObjectMetadata, identity types.NamespacedName, released string) *problem {
	wi, err := a.Identities.Get(ctx, identity.Namespace, identity.Name)
	switch {
	case err != nil && failures.Of(err) == failures.IdentityMissing:
		return &problem{"IdentityMissing", fmt.Sprintf("WorkloadIdentity %s does not exist: create it, or correct the annotation %s", identity, v1alpha1.AnnotationAccountIdentities)}
	case err != nil && failures.Of(err).Denied():
		return &problem{"IdentityUnreadable", failures.Forbidden(identity, err)}
	case err != nil:
		return &problem{"IdentityUnreadable", fmt.Sprintf("WorkloadIdentity %s can't be read: %v", identity, err)}
	}
	allowed, err := workload.MayUse(ctx, a.Reviews, workload.AccountUser(client.ObjectKeyFromObject(account), account.UID), authority.WorkloadIdentities, identity)
	if err != nil {
		return &problem{"ReviewFailed", err.Error()}
	}
	if !allowed {
		return &problem{"UseDenied", workload.MayNotUse(client.ObjectKeyFromObject(account), identity)}
	}
	secret := NewSecret(account, wi)
	if released != "" {
		secret.Annotations[v1alpha1.AnnotationReleased] = released
	}
	if err := a.Client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return a.taken(ctx, account, secret)
	} else if err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("create Secret %s: %v", secret.Name, err)}
	}
	a.Log.InfoContext(ctx, "Secret created", "secret", secret.Namespace+"/"+secret.Name, "serviceAccount", account.Name, "identity", identity.Name)
	return nil
}

// taken reports the problem of a needed name that another Secret has; nil if the cache was only behind.
func (a *Controller) taken(ctx context.Context, account *metav1.PartialObjectMetadata, secret *corev1.Secret) *problem {
	var found corev1.Secret
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(secret), &found); err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("read Secret %s: %v", secret.Name, err)}
	}
	if _, uid, owned := workload.AccountOf(&found); owned && uid == account.UID && tokensecret.Labelled(&found) {
		return nil
	}
	return &problem{"SecretNotOwned", fmt.Sprintf("the Secret %s is needed for tokens of WorkloadIdentity %s, but is not the agent's, and is left alone: remove or rename it",
		secret.Name, secret.Annotations[v1alpha1.AnnotationName])}
}

// NewSecret is the Secret of a service account for an identity, to be filled.
func NewSecret(account *metav1.PartialObjectMetadata, wi *v1alpha1.WorkloadIdentity) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace,
			Name:      tokensecret.NameFor(account.Name, wi.Name),
			Labels: map[string]string{
				v1alpha1.LabelPurpose:  v1alpha1.PurposeTokenRequestor,
				v1alpha1.LabelProvider: wi.Spec.TargetSystem.Type,

				v1alpha1.LabelExcludedFromBackup: "true",
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationName:      wi.Name,
				v1alpha1.AnnotationNamespace: wi.Namespace,
				v1alpha1.AnnotationContextObject: tokensecret.FormatContext(v1alpha1.ContextObject{
					APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace, UID: account.UID,
				}),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}},
		},
		Type: corev1.SecretTypeOpaque,
	}
}
