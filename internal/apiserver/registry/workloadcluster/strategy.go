// Package workloadcluster stores WorkloadCluster objects. In go requests that the API machinery has authorized, out come stored objects, of
// which no two have a user in common, and whose writers may create the tokens that they open to the cluster. It never issues tokens.
package workloadcluster

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type strategy struct{ stored.Strategy }

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	obj.(*v1alpha1.WorkloadCluster).Status = v1alpha1.WorkloadClusterStatus{}
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.WorkloadCluster), old.(*v1alpha1.WorkloadCluster)
	after.Status = before.Status
	stored.SetGeneration(after, before, !equality.Semantic.DeepEqual(after.Spec, before.Spec))
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.WorkloadCluster))
}

func (strategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.WorkloadCluster))
}

func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return released(added(old.(*v1alpha1.WorkloadCluster).Spec.Users, obj.(*v1alpha1.WorkloadCluster).Spec.Users))
}

// released warns of users who gain rights when they leave a cluster: its namespaces no longer bound their tokens.
func released(users []string) []string {
	left := foreign(users)
	if len(left) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("RBAC alone now decides which tokens %s can create: take their rights away unless they are to keep them", wording.Some(left))}
}
