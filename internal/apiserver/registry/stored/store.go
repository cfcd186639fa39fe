package stored

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/internal/apiserver/newer"
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
	// BeginCreate is called for each new object. Optional.
	BeginCreate genericregistry.BeginCreateFunc
	// Wrap returns the storage that the store uses, around the one that holds the objects. Optional.
	Wrap func(storage.Interface) storage.Interface
}

// NewStore sets up the store of a kind. It refuses objects that can't be read again. The store counts its objects from here on, in a goroutine
// that reads the store: do not change it. A copy of it can be changed.
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
		BeginCreate:               kind.BeginCreate,
	}
	store.ResetFieldsStrategy, _ = kind.Strategy.(rest.ResetFieldsStrategy)
	checked := *options
	checked.RESTOptions = wrappedOptions{checkedOptions{options.RESTOptions}, newer.Storage}
	if kind.Wrap != nil {
		checked.RESTOptions = wrappedOptions{checked.RESTOptions, kind.Wrap}
	}
	if err := store.CompleteWithOptions(&checked); err != nil {
		return nil, fmt.Errorf("set up storage of %s: %w", kind.Resource, err)
	}
	return store, nil
}

// wrappedOptions are options of storages that are wrapped.
type wrappedOptions struct {
	generic.RESTOptionsGetter
	wrap func(storage.Interface) storage.Interface
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o wrappedOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		object, list func() runtime.Object, attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorate(config, prefix, key, object, list, attributes, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return o.wrap(store), destroy, nil
	}
	return options, nil
}
