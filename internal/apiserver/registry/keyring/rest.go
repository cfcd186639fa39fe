package keyring

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
)

// REST serves the resource keyrings: to be read, and its spec to be changed. The one object is made by the server; clients
// cannot make one, or delete it, since its relying parties must not be forgotten.
type REST struct {
	store *genericregistry.Store
}

var (
	_ rest.Getter             = &REST{}
	_ rest.Lister             = &REST{}
	_ rest.Watcher            = &REST{}
	_ rest.Patcher            = &REST{}
	_ rest.ShortNamesProvider = &REST{}
)

// NewREST returns the storage of KeyRings, and that of their status; changed is called after a status was written.
func NewREST(scheme *runtime.Scheme, options generic.RESTOptionsGetter, changed func()) (*REST, *StatusREST, error) {
	s := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &v1alpha1.KeyRing{} },
		NewListFunc:               func() runtime.Object { return &v1alpha1.KeyRingList{} },
		DefaultQualifiedResource:  v1alpha1.Resource("keyrings"),
		SingularQualifiedResource: v1alpha1.Resource("keyring"),
		PredicateFunc:             predicate,
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            table{},
		StorageVersioner:          v1alpha1.SchemeGroupVersion,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return nil, nil, fmt.Errorf("set up storage of keyrings: %w", err)
	}
	status := *store
	status.UpdateStrategy, status.ResetFieldsStrategy = statusStrategy{s}, statusStrategy{s}
	return &REST{store: store}, &StatusREST{store: &status, changed: changed}, nil
}

// Ensure makes the KeyRing of a name if it does not exist.
func (r *REST) Ensure(ctx context.Context, name string) error {
	_, err := r.store.Create(request.WithNamespace(ctx, ""), &v1alpha1.KeyRing{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil, &metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make KeyRing %s: %w", name, err)
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

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	ring, ok := obj.(*v1alpha1.KeyRing)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not a KeyRing", obj)
	}
	return ring.Labels, fields.Set{"metadata.name": ring.Name}, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}
