package workloadcluster

import (
	"context"
	"fmt"
	"time"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// statusStrategy lets the status change, and nothing else.
type statusStrategy struct{ strategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, status := obj.(*v1alpha1.WorkloadCluster), obj.(*v1alpha1.WorkloadCluster).Status
	old.(*v1alpha1.WorkloadCluster).DeepCopyInto(after)
	after.Status = status
}

// ValidateUpdate implements rest.RESTUpdateStrategy: clusters from before a rule have a status like others.
func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Seen implements clusters.Status. A status that another replica has just written stays, and costs no write.
func (r *REST) Seen(ctx context.Context, cluster *clusters.Cluster, at time.Time, agentVersion string) error {
	_, _, err := r.status.Update(request.WithNamespace(ctx, ""), cluster.Name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		seen := old.DeepCopyObject().(*v1alpha1.WorkloadCluster)
		if seen.UID != cluster.UID {
			return nil, apierrors.NewConflict(v1alpha1.Resource("workloadclusters"), cluster.Name, fmt.Errorf("its uid is %s, and not %s", seen.UID, cluster.UID))
		}
		clusters.Note(&seen.Status, at, agentVersion)
		return seen, nil
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted
	}
	return err
}
