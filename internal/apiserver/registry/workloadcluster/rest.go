package workloadcluster

import (
	"context"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

// REST serves the resource workloadclusters.
type REST struct {
	stored.Reviewed[*v1alpha1.WorkloadCluster]
	status     *genericregistry.Store
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// NewREST returns the storage of WorkloadClusters. The authorizer reviews the rights of their writers.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer authorizer.UnconditionalAuthorizer) (*REST, error) {
	s := strategy{stored.NewStrategy(scheme, false)}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "workloadclusters", Singular: "workloadcluster",
		Object: &v1alpha1.WorkloadCluster{}, List: &v1alpha1.WorkloadClusterList{}, Strategy: s, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy{s}
	r := &REST{status: &status, authorizer: authorizer}
	r.Reviewed = stored.Reviewed[*v1alpha1.WorkloadCluster]{Store: store, Review: r.review}
	return r, nil
}

// ShortNames implements rest.ShortNamesProvider.
func (*REST) ShortNames() []string { return []string{"wc"} }

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }

// Delete implements rest.GracefulDeleter.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, stored.Then(validate, func(ctx context.Context, obj runtime.Object) error {
		for _, text := range released(obj.(*v1alpha1.WorkloadCluster).Spec.Users) {
			warning.AddWarning(ctx, "", text)
		}
		return nil
	}), options)
}
