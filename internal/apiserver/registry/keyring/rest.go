package keyring

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// REST serves the resource keyrings: to be read, and its spec to be changed. The one object is made by the server; clients
// cannot make one, or delete it, since its relying parties must not be forgotten.
type REST struct {
	store, status, owner *genericregistry.Store
	issuer               string
}

var (
	_ rest.Getter             = &REST{}
	_ rest.Lister             = &REST{}
	_ rest.Watcher            = &REST{}
	_ rest.Patcher            = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// NewREST returns the storage of KeyRings of an issuer, and that of their status; changed is called after a status was written.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, issuer identity.Issuer, changed func()) (*REST, *StatusREST, error) {
	s := strategy{Strategy: stored.NewStrategy(scheme, false), issuer: string(issuer)}
	store, err := stored.NewStore(stored.Kind{
		Version: v1alpha1.SchemeGroupVersion, Resource: "keyrings", Singular: "keyring",
		Object: &v1alpha1.KeyRing{}, List: &v1alpha1.KeyRingList{}, Strategy: s, Table: table,
	}, &generic.StoreOptions{RESTOptions: options})
	if err != nil {
		return nil, nil, err
	}
	status, owner := *store, *store
	status.UpdateStrategy, status.ResetFieldsStrategy = statusStrategy{s}, statusStrategy{s}
	owner.UpdateStrategy = ownerStrategy{statusStrategy{s}}
	return &REST{store: store, status: &status, owner: &owner, issuer: s.issuer}, &StatusREST{store: &status, changed: changed}, nil
}

// Ensure makes the KeyRing of a name if it does not exist. One of another issuer is an error, *Foreign.
func (r *REST) Ensure(ctx context.Context, name string) error {
	_, err := r.store.Create(request.WithNamespace(ctx, ""), &v1alpha1.KeyRing{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil, &metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return r.Own(ctx, name, "")
	}
	if err != nil {
		return fmt.Errorf("make KeyRing %s: %w", name, err)
	}
	return nil
}

// Foreign is the error where the KeyRing is that of another installation: one has one issuer for life.
type Foreign struct{ Issuer string }

// Error implements error.
func (f *Foreign) Error() string {
	return "the storage is that of another installation, whose issuer is " + f.Issuer
}

// Own records the issuer of this server in the KeyRing of a name, if it has none, or that of a former installation. It returns *Foreign if
// the KeyRing has yet another one, and nil if there is no KeyRing.
func (r *REST) Own(ctx context.Context, name string, former identity.Issuer) error {
	ctx = request.WithNamespace(ctx, "")
	ring, err := r.KeyRing(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read KeyRing %s: %w", name, err)
	case ring.Status.Issuer == r.issuer:
		return nil
	case ring.Status.Issuer != "" && ring.Status.Issuer != string(former):
		return &Foreign{ring.Status.Issuer}
	}
	ring.Status.Issuer = r.issuer
	if _, _, err := r.owner.Update(ctx, name, rest.DefaultUpdatedObjectInfo(ring), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("record the issuer in KeyRing %s: %w", name, err)
	}
	return nil
}

// KeyRing returns the stored object of a name, or the API error.
func (r *REST) KeyRing(ctx context.Context, name string) (*v1alpha1.KeyRing, error) {
	obj, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ring, ok := obj.(*v1alpha1.KeyRing)
	if !ok {
		return nil, fmt.Errorf("storage of keyrings returned a %T", obj)
	}
	return ring, nil
}

// Remember adds a ring's past to the status of a KeyRing. The key controller does so as well, when it sees the ring.
func (r *REST) Remember(ctx context.Context, name string, past keys.Past) error {
	remember := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
		ring, ok := stored.DeepCopyObject().(*v1alpha1.KeyRing)
		if !ok {
			return nil, fmt.Errorf("storage of keyrings returned a %T", stored)
		}
		report.Remember(&ring.Status, past)
		return ring, nil
	})
	if _, _, err := r.status.Update(ctx, name, remember, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("remember the ring in KeyRing %s: %w", name, err)
	}
	return nil
}

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &v1alpha1.KeyRing{} }

// NewList implements rest.Lister.
func (*REST) NewList() runtime.Object { return &v1alpha1.KeyRingList{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() { r.store.Destroy() }

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "keyring" }

// ShortNames implements rest.ShortNamesProvider.
func (*REST) ShortNames() []string { return []string{"kr"} }

// Categories implements rest.CategoriesProvider.
func (*REST) Categories() []string { return []string{"credence"} }
