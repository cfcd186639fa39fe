package apiservertest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/test/testkit"
)

// UIDs is a storage of uids in memory.
type UIDs struct {
	storage.Interface
	Stored map[string]*identityuid.IdentityUID // by key
	Broken error                               // of writing uids
	Log    []string                            // what was stored
}

// Create implements storage.Interface.
func (s *UIDs) Create(_ context.Context, key string, obj, _ runtime.Object, _ uint64) error {
	if s.Broken != nil {
		return s.Broken
	}
	if s.Stored[key] != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	s.Stored[key] = obj.(*identityuid.IdentityUID)
	s.Log = append(s.Log, "stored "+obj.(*identityuid.IdentityUID).Identity.Name)
	return nil
}

// Get implements storage.Interface.
func (s *UIDs) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	if found := s.Stored[key]; found != nil {
		*out.(*identityuid.IdentityUID) = *found
	}
	return nil
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s *UIDs) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	decorate := func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
		storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		return s, func() {}, nil
	}
	return generic.RESTOptions{ResourcePrefix: "uids", Decorator: decorate}, nil
}

// NewUIDs returns an empty storage of uids, and the store of a server on it.
func NewUIDs(t testing.TB) (*UIDs, *identityuid.Store) {
	t.Helper()
	s := &UIDs{Stored: map[string]*identityuid.IdentityUID{}}
	uids := testkit.Need(identityuid.New(s))(t)
	return s, uids
}
