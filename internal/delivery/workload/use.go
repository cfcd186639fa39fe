package workload

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/authority"
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
