// Package apiservertest has what tests of the API server's packages share: storages in an etcd, rights of callers, and a fake
// storage of uids. It is for tests only, and knows nothing of the server that is put together.
package apiservertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/credence-id/credence/internal/apiserver/storage"
)

// server is the etcd of all tests of a package.
type server struct {
	folder string
	etcd   *storage.Etcd
	err    error
}

// runs reports whether Main runs the tests, and stops what they start.
var runs atomic.Bool

var started = sync.OnceValue(func() (s server) {
	if !runs.Load() {
		return server{err: errors.New("the package needs a TestMain that calls apiservertest.Main")}
	}
	if s.folder, s.err = os.MkdirTemp("", "credence-apiservertest-"); s.err == nil {
		s.etcd, s.err = storage.Start(context.Background(), s.folder, slog.New(slog.DiscardHandler))
	}
	return s
})

// Main runs the tests of a package, which share an etcd, and stops it.
func Main(m *testing.M) {
	runs.Store(true)
	code := m.Run()
	if storages.Load() > 0 {
		stop()
	}
	os.Exit(code)
}

func stop() {
	s := started()
	if s.etcd != nil {
		s.etcd.Stop()
	}
	_ = os.RemoveAll(s.folder)
}

// Storage is a part of the shared etcd that no other test has.
type Storage struct {
	Endpoint string
	// Prefix is what all of its keys begin with, without a slash at the end.
	Prefix string
}

var storages atomic.Int64

// NewStorage returns an empty storage. The etcd starts with the first one.
func NewStorage(t testing.TB) Storage {
	t.Helper()
	number := storages.Add(1)
	s := started()
	if s.err != nil {
		t.Fatal(s.err)
	}
	return Storage{s.etcd.Endpoint(), fmt.Sprintf("/registry-%d", number)}
}

// RESTOptions returns options that store the kinds of a scheme, without a watch cache.
func (s Storage) RESTOptions(scheme *runtime.Scheme, versions ...schema.GroupVersion) generic.RESTOptionsGetter {
	config := storagebackend.NewDefaultConfig(s.Prefix, serializer.NewCodecFactory(scheme).LegacyCodec(versions...))
	config.Transport.ServerList = []string{s.Endpoint}
	options := genericoptions.NewEtcdOptions(config)
	options.EnableWatchCache = false
	return options.CreateRESTOptionsGetter(&genericoptions.SimpleStorageFactory{StorageConfig: *config}, nil)
}
