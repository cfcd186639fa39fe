package tokenrequest

import (
	"cmp"
	"context"
	"fmt"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/internal/issuer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// callersCluster returns the workload cluster that lists the caller, or nil.
func (r *REST) callersCluster(ctx context.Context, kind *ContextKind, tr *v1alpha1.TokenRequest) (*clusters.Cluster, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewUnauthorized("tokens are issued to authenticated callers only")
	}
	return clusters.Narrow(r.Clusters, caller, tr.Namespace, tr.Name, kind != nil && kind.objects != nil)
}

// claimOf returns a cluster as its tokens name it: with the uid of the object that stands for it by a ContextKind, if there is one.
func (r *REST) claimOf(cluster *clusters.Cluster) (*issuer.Cluster, error) {
	if cluster == nil {
		return nil, nil
	}
	uid, err := r.Objects.ClusterUID(cluster.Name)
	if err != nil {
		return nil, err
	}
	return &issuer.Cluster{Name: cluster.Name, UID: string(cmp.Or(uid, cluster.UID))}, nil
}

// assertedContext is the context that a user of a workload cluster asserts: an object of its own cluster, which can't be looked up here. The
// token names the cluster beside it.
func (r *REST) assertedContext(ctx context.Context, caller user.Info, kind *ContextKind, object *v1alpha1.ContextObject, wi *v1alpha1.WorkloadIdentity) (*issuer.Context, error) {
	if allowed, err := r.authorized(ctx, caller, "assert", identityObject(wi)); err != nil {
		return nil, err
	} else if !allowed {
		return nil, apierrors.NewForbidden(kind.Resource.GroupResource(), object.Name, fmt.Errorf(
			"user %q may not be given a token with this context: it cannot assert resource %q in API group %q in the namespace %q",
			caller.GetName(), "workloadidentities", v1alpha1.GroupName, wi.Namespace))
	}
	return kind.Asserted(object), nil
}
