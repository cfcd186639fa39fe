package quota

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

// REST serves the resource quotas.
type REST struct {
	*genericregistry.Store
	status *genericregistry.Store
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// NewREST returns the storage of Quotas.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*REST, error) {
	s := strategy{stored.NewStrategy(scheme, true)}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "quotas", Singular: "credentialquota",
		Object: &v1alpha1.Quota{}, List: &v1alpha1.QuotaList{}, Strategy: s, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy{s}
	return &REST{store, &status}, nil
}

// Report writes the status of a Quota. One that another replica has just written stays, and costs no write.
func (r *REST) Report(ctx context.Context, of *v1alpha1.Quota, status v1alpha1.QuotaStatus) error {
	_, _, err := r.status.Update(request.WithNamespace(ctx, of.Namespace), of.Name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		reported := old.DeepCopyObject().(*v1alpha1.Quota)
		// Another version of it is counted anew.
		if reported.UID == of.UID && reported.Generation == of.Generation {
			reported.Status = Renewed(reported.Status, status)
		}
		return reported, nil
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Renewed is a status in place of an earlier one: conditions that have not changed keep their times.
func Renewed(before, status v1alpha1.QuotaStatus) v1alpha1.QuotaStatus {
	conditions := slices.Clone(before.Conditions)
	for _, each := range status.Conditions {
		meta.SetStatusCondition(&conditions, each)
	}
	status.Conditions = conditions
	if equality.Semantic.DeepEqual(before, status) {
		return before
	}
	return status
}

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }
