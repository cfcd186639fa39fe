package stored

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Kind is a kind that the API server stores.
type Kind struct {
	Version            schema.GroupVersion
	Resource, Singular string
	// Object and List are empty ones.
	Object, List runtime.Object
	Strategy     interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
		rest.RESTDeleteStrategy
	}
	Table rest.TableConvertor
}

// NewStore sets up the store of a kind. It refuses objects that can't be read again.
func NewStore(kind Kind, options *generic.StoreOptions) (*genericregistry.Store, error) {
	store := &genericregistry.Store{
		NewFunc:                   kind.Object.DeepCopyObject,
		NewListFunc:               kind.List.DeepCopyObject,
		DefaultQualifiedResource:  kind.Version.WithResource(kind.Resource).GroupResource(),
		SingularQualifiedResource: kind.Version.WithResource(kind.Singular).GroupResource(),
		CreateStrategy:            kind.Strategy,
		UpdateStrategy:            kind.Strategy,
		DeleteStrategy:            kind.Strategy,
		TableConvertor:            kind.Table,
		StorageVersioner:          kind.Version,
	}
	store.ResetFieldsStrategy, _ = kind.Strategy.(rest.ResetFieldsStrategy)
	checked := *options
	checked.RESTOptions = checkedOptions{options.RESTOptions}
	if err := store.CompleteWithOptions(&checked); err != nil {
		return nil, fmt.Errorf("set up storage of %s: %w", kind.Resource, err)
	}
	return store, nil
}
