package delivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// secrets returns the Secrets that the agent keeps for an account, by the name of their identity.
func (a *accounts) secrets(ctx context.Context, account *metav1.PartialObjectMetadata) (map[string]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := a.client.List(ctx, &list, client.InNamespace(account.Namespace), client.MatchingFields{accountIndex: account.Name}); err != nil {
		return nil, err
	}
	kept := map[string]*corev1.Secret{}
	for i := range list.Items {
		secret := &list.Items[i]
		_, uid, _ := accountOf(secret)
		name := secret.Annotations[v1alpha1.AnnotationName]
		if uid == account.UID && secret.DeletionTimestamp == nil && secret.Name == tokensecret.NameFor(account.Name, name) {
			kept[name] = secret
		}
	}
	return kept, nil
}

// create makes the Secrets that are missing.
func (a *accounts) create(ctx context.Context, account *metav1.PartialObjectMetadata, wanted []string, kept map[string]*corev1.Secret) []problem {
	var problems []problem
	for _, name := range wanted {
		if kept[name] != nil {
			continue
		}
		if p := a.createOne(ctx, account, types.NamespacedName{Namespace: account.Namespace, Name: name}); p != nil {
			problems = append(problems, *p)
		}
	}
	return problems
}

func (a *accounts) createOne(ctx context.Context, account *metav1.PartialObjectMetadata, identity types.NamespacedName) *problem {
	wi, err := a.identities.Get(ctx, identity.Namespace, identity.Name)
	switch {
	case err != nil && cause(err) == IdentityMissing:
		return &problem{"IdentityMissing", fmt.Sprintf("WorkloadIdentity %s does not exist: create it, or correct the annotation %s", identity, v1alpha1.AnnotationAccountIdentities)}
	case err != nil && cause(err) == AgentForbidden:
		return &problem{"IdentityUnreadable", forbidden(identity, err)}
	case err != nil:
		return &problem{"IdentityUnreadable", fmt.Sprintf("WorkloadIdentity %s can't be read: %v", identity, err)}
	}
	allowed, err := mayUse(ctx, a.reviews, accountUser(client.ObjectKeyFromObject(account), account.UID), identity)
	if err != nil {
		return &problem{"ReviewFailed", err.Error()}
	}
	if !allowed {
		return &problem{"UseDenied", mayNotUse(client.ObjectKeyFromObject(account), identity)}
	}
	secret := newSecret(account, wi)
	if err := a.client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return a.taken(ctx, account, secret)
	} else if err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("create Secret %s: %v", secret.Name, err)}
	}
	a.log.InfoContext(ctx, "Secret created", "secret", secret.Namespace+"/"+secret.Name, "serviceAccount", account.Name, "identity", identity.Name)
	return nil
}

// taken reports the problem of a needed name that another Secret has; nil if the cache was only behind.
func (a *accounts) taken(ctx context.Context, account *metav1.PartialObjectMetadata, secret *corev1.Secret) *problem {
	var found corev1.Secret
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(secret), &found); err != nil {
		return &problem{"SecretNotCreated", fmt.Sprintf("read Secret %s: %v", secret.Name, err)}
	}
	if _, uid, owned := accountOf(&found); owned && uid == account.UID && tokensecret.Labelled(&found) {
		return nil
	}
	return &problem{"SecretNotOwned", fmt.Sprintf("the Secret %s is needed for tokens of WorkloadIdentity %s, but is not the agent's, and is left alone: remove or rename it",
		secret.Name, secret.Annotations[v1alpha1.AnnotationName])}
}

func newSecret(account *metav1.PartialObjectMetadata, wi *v1alpha1.WorkloadIdentity) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: account.Namespace,
			Name:      tokensecret.NameFor(account.Name, wi.Name),
			Labels: map[string]string{
				v1alpha1.LabelPurpose:  v1alpha1.PurposeTokenRequestor,
				v1alpha1.LabelProvider: wi.Spec.TargetSystem.Type,
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
