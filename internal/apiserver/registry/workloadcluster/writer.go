package workloadcluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/rights"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/wording"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// review refuses a user whom another cluster lists, a user other than a joined account whom the writer may not impersonate, and a namespace
// in which the writer may not create tokens.
func (r *REST) review(ctx context.Context, after, before *v1alpha1.WorkloadCluster, _ bool) error {
	if before == nil {
		before = &v1alpha1.WorkloadCluster{}
	}
	users, opened := added(after.Spec.Users, before.Spec.Users), openedBy(after)
	if len(users) == 0 {
		opened = added(opened, openedBy(before))
	}
	if err := r.checkUsers(ctx, after, users); err != nil {
		return err
	}
	writer, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewUnauthorized("workload clusters are written by authenticated users only")
	}
	if err := r.checkForeign(ctx, writer, after.Name, foreign(users)); err != nil {
		return err
	}
	return r.checkRights(ctx, writer, after.Name, opened)
}

// checkUsers checks users that are added to a cluster. It looks in the storage, not in a cache. Of two writes at the same moment both can succeed: then the user is of two clusters,
// and gets no tokens.
func (r *REST) checkUsers(ctx context.Context, cluster *v1alpha1.WorkloadCluster, users []string) error {
	if len(users) == 0 {
		return nil
	}
	obj, err := r.Store.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	list, ok := obj.(*v1alpha1.WorkloadClusterList)
	if !ok {
		return fmt.Errorf("storage of workloadclusters returned a %T", obj)
	}
	for _, other := range list.Items {
		for _, user := range users {
			if other.Name != cluster.Name && slices.Contains(other.Spec.Users, user) {
				return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("WorkloadCluster").GroupKind(), cluster.Name, field.ErrorList{field.Invalid(
					field.NewPath("spec", "users").Index(slices.Index(cluster.Spec.Users, user)), wording.Abbreviate(user), fmt.Sprintf("is a user of WorkloadCluster %s: each cluster has users of its own", other.Name))})
			}
		}
	}
	return nil
}

// foreign returns the users that are not service accounts of joined clusters.
func foreign(users []string) []string {
	return slices.DeleteFunc(slices.Clone(users), func(name string) bool {
		namespace, _, err := serviceaccount.SplitUsername(name)
		return err == nil && namespace == v1alpha1.WorkloadClusters
	})
}

// checkForeign reviews whether the writer may impersonate each of these users: a cluster narrows what its users get.
func (r *REST) checkForeign(ctx context.Context, writer user.Info, name string, users []string) error {
	for _, subject := range users {
		object := authority.Object{Kind: authority.Kind{Resource: "users"}, Name: subject}
		if namespace, account, err := serviceaccount.SplitUsername(subject); err == nil {
			object = authority.Object{Kind: authority.ServiceAccounts, Namespace: namespace, Name: account}
		}
		if allowed, err := rights.Granted(ctx, r.authorizer, writer, "impersonate", object); err != nil {
			return err
		} else if !allowed {
			return apierrors.NewForbidden(v1alpha1.Resource("workloadclusters"), name, fmt.Errorf(
				"user %q cannot impersonate user %q, and so may not add it to a cluster: list service accounts of the namespace %s, or ask for the right",
				writer.GetName(), wording.Abbreviate(subject), v1alpha1.WorkloadClusters))
		}
	}
	return nil
}

// checkRights reviews whether the writer may create the tokens of all identities in namespaces.
func (r *REST) checkRights(ctx context.Context, writer user.Info, name string, namespaces []string) error {
	if len(namespaces) == 0 {
		return nil
	}
	// The right in all namespaces comes first: most writers have it, and the others need no review then.
	for _, namespace := range append([]string{everywhere}, namespaces...) {
		allowed, err := rights.Granted(ctx, r.authorizer, writer, "create", authority.Object{Kind: authority.WorkloadIdentityTokens, Namespace: namespace})
		if err != nil || allowed && namespace == everywhere {
			return err
		}
		if !allowed && slices.Contains(namespaces, namespace) {
			place := "in namespace " + namespace
			if namespace == everywhere {
				place = "in all namespaces, as spec.identities.fromContexts needs it"
			}
			return apierrors.NewForbidden(v1alpha1.Resource("workloadclusters"), name, fmt.Errorf(
				"user %q cannot create resource %q in API group %q %s, and so may not open it to a cluster", writer.GetName(), "workloadidentities/token", authority.WorkloadIdentityTokens.Group, place))
		}
	}
	return nil
}

// everywhere stands for all namespaces.
const everywhere = ""

// openedBy returns the namespaces whose identities a cluster may have.
func openedBy(cluster *v1alpha1.WorkloadCluster) []string {
	if identities := cluster.Spec.Identities; identities.FromContexts {
		return append([]string{everywhere}, identities.Namespaces...)
	}
	return cluster.Spec.Identities.Namespaces
}

func added(after, before []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(value string) bool { return slices.Contains(before, value) })
}
