package workload

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// MayUse reviews whether a user of the workload cluster may use an identity or a binding. An error is an outage, not a denial: an authorizer that
// failed might have allowed.
func MayUse(ctx context.Context, reviews authority.Reviewer, user authority.Subject, kind authority.Kind, object types.NamespacedName) (bool, error) {
	q := authority.Use(user, kind, object.Namespace, object.Name)
	answer, err := authority.Ask(ctx, reviews, q)
	if err == nil && answer.Undecided != "" {
		err = fmt.Errorf("review whether %s: %s", q, answer.Undecided)
	}
	return answer.Allowed, err
}

// AccountUser is a service account as a user.
func AccountUser(account types.NamespacedName, uid types.UID) authority.Subject {
	return authority.ServiceAccount(account.Namespace, account.Name, string(uid))
}

// MayNotUse is the message for a service account that may not use an identity.
func MayNotUse(account, identity types.NamespacedName) string {
	return fmt.Sprintf("service account %s may not use the WorkloadIdentity %s, so it gets no tokens: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it, for instance with: "+
		"kubectl create rolebinding %s-uses-identities -n %s --clusterrole=credence:workloadidentities:user --serviceaccount=%s:%s",
		account, identity, account.Name, identity.Namespace, account.Namespace, account.Name)
}

// Denied returns why the user on whose behalf the token is requested may not use the identity, or "". It is the service
// account that is the context, or else the user who labelled the Secret, if that is known.
func Denied(ctx context.Context, reviews authority.Reviewer, secret metav1.Object, request tokensecret.Request) (string, error) {
	if !tokensecret.ServiceAccountContext(request.Context) {
		user, known := tokensecret.RequestedBy(secret)
		if !known {
			return "", nil
		}
		used, kind, what, role := request.Identity, authority.WorkloadIdentities, "WorkloadIdentity", "credence:workloadidentities:user"
		if request.Binding.Name != "" {
			used, kind, what, role = request.Binding, authority.CredentialsBindings, "CredentialsBinding", "credence:credentialsbindings:user"
		}
		allowed, err := MayUse(ctx, reviews, user, kind, used)
		if err != nil || allowed {
			return "", err
		}
		return fmt.Sprintf("%s, on whose behalf the Secret is filled, may no longer use the %s %s, so no new token is written: a cluster admin, or a person with ClusterRole credence:workloadidentities:granter in that namespace, allows it again, "+
			"for instance with: kubectl create rolebinding NAME -n %s --clusterrole=%s --user=%s; or a user who may use it takes the Secret over: "+
			"kubectl annotate secret %s -n %s --overwrite %s=me",
			user.Name, what, used, used.Namespace, role, wording.Argument(user.Name), secret.GetName(), secret.GetNamespace(), v1alpha1.AnnotationRequester), nil
	}
	account := types.NamespacedName{Namespace: request.Context.Namespace, Name: request.Context.Name}
	allowed, err := MayUse(ctx, reviews, AccountUser(account, request.Context.UID), authority.WorkloadIdentities, request.Identity)
	if err != nil || allowed {
		return "", err
	}
	return MayNotUse(account, request.Identity), nil
}
