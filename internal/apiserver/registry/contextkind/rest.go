package contextkind

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

// REST serves the resource contextkinds.
type REST struct {
	stored.Reviewed[*v1alpha1.ContextKind]
	authorizer authorizer.UnconditionalAuthorizer
}

var _ rest.StandardStorage = &REST{}

// NewREST returns the storage of ContextKinds. The authorizer reviews what a writer may read.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer authorizer.UnconditionalAuthorizer) (*REST, error) {
	s := strategy{stored.NewStrategy(scheme, false)}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "contextkinds", Singular: "contextkind",
		Object: &v1alpha1.ContextKind{}, List: &v1alpha1.ContextKindList{}, Strategy: s, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, err
	}
	r := &REST{authorizer: authorizer}
	r.Reviewed = stored.Reviewed[*v1alpha1.ContextKind]{Store: store, Review: r.review}
	return r, nil
}

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }
