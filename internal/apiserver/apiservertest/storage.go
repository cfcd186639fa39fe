// Package apiservertest has what tests of the API server's packages share: a storage in an etcd of its own, rights of callers, and a fake
// storage of uids. It is for tests only, and knows nothing of the server that is put together.
package apiservertest

import (
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/credence-id/credence/internal/apiserver/storage"
)

// Etcd starts an etcd for a test, and returns its endpoint.
func Etcd(t testing.TB) string {
	t.Helper()
	etcd, err := storage.Start(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Stop)
	return etcd.Endpoint()
}

// RESTOptions returns options that store the kinds of a scheme in an etcd, without a watch cache.
func RESTOptions(endpoint string, scheme *runtime.Scheme, versions ...schema.GroupVersion) generic.RESTOptionsGetter {
	config := storagebackend.NewDefaultConfig("/registry", serializer.NewCodecFactory(scheme).LegacyCodec(versions...))
	config.Transport.ServerList = []string{endpoint}
	options := genericoptions.NewEtcdOptions(config)
	options.EnableWatchCache = false
	return options.CreateRESTOptionsGetter(&genericoptions.SimpleStorageFactory{StorageConfig: *config}, nil)
}
