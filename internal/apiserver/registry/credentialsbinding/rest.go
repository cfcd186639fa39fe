package credentialsbinding

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

// REST serves the resource credentialsbindings.
type REST struct {
	stored.Reviewed[*v1alpha1.CredentialsBinding]
	// Objects finds the objects that refer to bindings.
	Objects    Objects
	references references
	limits     limits
	// status is the store for status and finalizers of bindings that exist.
	status *genericregistry.Store
	clock  clock.PassiveClock
}

var (
	_ rest.StandardStorage    = &REST{}
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// NewREST returns the storage of CredentialsBindings. The authorizer reviews what their writers may refer to.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, identities Identities, quotas rest.Getter, namespaces Namespaces, authorizer authorizer.UnconditionalAuthorizer) (*REST, error) {
	s := strategy{stored.NewStrategy(scheme, true)}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "credentialsbindings", Singular: "credentialsbinding",
		Object: &v1alpha1.CredentialsBinding{}, List: &v1alpha1.CredentialsBindingList{}, Strategy: s, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, err
	}
	r, l := references{identities, authorizer}, limits{quotas, namespaces, authorizer}
	review := func(ctx context.Context, binding, old *v1alpha1.CredentialsBinding, dryRun bool) error {
		if old == nil {
			if err := l.check(ctx, binding); err != nil {
				return err
			}
		}
		return r.check(ctx, binding, old, dryRun)
	}
	status := *store
	status.UpdateStrategy = statusStrategy{s}
	return &REST{
		Reviewed: stored.Reviewed[*v1alpha1.CredentialsBinding]{Store: store, Review: review}, Objects: noObjects{},
		references: r, limits: l, status: &status, clock: clock.RealClock{},
	}, nil
}

// Create implements rest.Creater.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := r.Reviewed.Create(ctx, obj, validate, options)
	if err != nil {
		return nil, err
	}
	return r.settled(ctx, created, options.DryRun), nil
}

// Update implements rest.Updater.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	updated, created, err := r.Reviewed.Update(ctx, name, info, create, update, forceAllowCreate, options)
	if err != nil {
		return nil, false, err
	}
	return r.settled(ctx, updated, options.DryRun), created, nil
}

// ShortNames implements rest.ShortNamesProvider.
func (*REST) ShortNames() []string { return []string{"cb"} }

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }
