package clusters

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	authentication "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
)

// Users finds the workload cluster of a user: nil for a user of none. Its errors are API errors.
type Users interface {
	Of(user string) (*Cluster, error)
}

// Joined reports whether a caller is a service account of joined clusters: by its name, whatever groups an impersonator gave it, or by its group.
func Joined(caller user.Info) bool {
	return strings.HasPrefix(caller.GetName(), "system:serviceaccount:"+v1alpha1.WorkloadClusters+":") ||
		slices.Contains(caller.GetGroups(), "system:serviceaccounts:"+v1alpha1.WorkloadClusters)
}

// OfWebhook reports whether a user is the webhook's account of a joined cluster, by its name. RBAC grants it the same as all accounts of
// the group, and clusters that joined with an earlier version list it among their users.
func OfWebhook(user string) bool {
	account, joined := strings.CutPrefix(user, "system:serviceaccount:"+v1alpha1.WorkloadClusters+":")
	return joined && strings.HasSuffix(account, "-webhook")
}

// Narrow returns the workload cluster of a caller that uses an identity, or nil if no cluster lists the caller. The error is 403 if a
// service account of joined clusters is in no cluster or is a webhook's, and if the cluster does not list the namespace of the identity.
// With byObject the request names a context object, which the caller of Narrow checks: then a cluster with fromContexts may use identities
// of any namespace. The error is 503 while the clusters are not known.
func Narrow(users Users, caller user.Info, namespace, identity string, byObject bool) (*Cluster, error) {
	cluster, err := users.Of(caller.GetName())
	if err != nil {
		return nil, err
	}
	refused := func(format string, args ...any) error {
		return apierrors.NewForbidden(authentication.Resource("workloadidentities"), identity, fmt.Errorf(format, args...))
	}
	switch {
	case OfWebhook(caller.GetName()):
		return nil, refused("user %q is the account of a webhook, which reads identities and needs no tokens: a cluster admin takes it off its WorkloadCluster, as credence cluster join does", caller.GetName())
	case cluster == nil && Joined(caller):
		return nil, refused("user %q is in no WorkloadCluster, as service accounts of the namespace %s must be", caller.GetName(), v1alpha1.WorkloadClusters)
	case cluster == nil:
		return nil, nil
	}
	if err := Bound(cluster, fmt.Sprintf(" of user %q", caller.GetName()), namespace, identity, byObject); err != nil {
		return nil, err
	}
	return cluster, nil
}

// Bound is 403 unless a cluster may have the identities of a namespace, or by an object what that uses. user follows the name of the cluster in the message.
func Bound(cluster *Cluster, user, namespace, identity string, byObject bool) error {
	switch {
	case byObject && cluster.Spec.Identities.FromContexts, slices.Contains(cluster.Spec.Identities.Namespaces, namespace):
		return nil
	}
	hint := ""
	if cluster.Spec.Identities.FromContexts {
		hint = ", and the request does not name a context object that uses it"
	}
	return apierrors.NewForbidden(authentication.Resource("workloadidentities"), identity, fmt.Errorf(
		"WorkloadCluster %s%s may not have identities of the namespace %s: spec.identities.namespaces does not list it%s", cluster.Name, user, namespace, hint))
}
