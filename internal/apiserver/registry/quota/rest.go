package quota

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

// REST serves the resource quotas.
type REST struct{ *genericregistry.Store }

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// NewREST returns the storage of Quotas.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*REST, error) {
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "quotas", Singular: "quota",
		Object: &v1alpha1.Quota{}, List: &v1alpha1.QuotaList{}, Strategy: strategy{stored.NewStrategy(scheme, true)}, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, err
	}
	return &REST{store}, nil
}

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }
