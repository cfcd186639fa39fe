// Package cluster stores what the API server serves in the host cluster's own API: each object is a record, a cluster-scoped custom
// resource that this server alone may write. In go a client of the host and the configuration of a resource, out comes the storage of
// k8s.io/apiserver for etcd, with a client whose keys are records: its rules for conflicts, pages, watches and transformers are those of
// any API server. It caches nothing, and keeps nothing outside the host.
package cluster

import (
	"context"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
)

// New returns the storage of a resource whose keys begin with resourcePrefix, with records that mac authenticates. The second result must be called at the end.
func New(client rest.Interface, mac *MAC, config *storagebackend.ConfigForResource, newFunc, newListFunc func() runtime.Object, resourcePrefix string) (storage.Interface, factory.DestroyFunc, error) {
	transformer := config.Transformer
	decoder := etcd3.NewDefaultDecoder(config.Codec, storage.APIObjectVersioner{})
	deletable := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if transformer == nil {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(identity.NewEncryptCheckTransformer())
	}
	if deletable {
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	s, destroy, err := newStore(&records{client: client, mac: mac}, config, newFunc, newListFunc, resourcePrefix, transformer, decoder)
	if err != nil {
		return nil, nil, err
	}
	if deletable {
		s.Interface = etcd3.NewStoreWithUnsafeCorruptObjectDeletion(s.Interface, config.GroupResource)
	}
	return s, destroy, nil
}

func newStore(r *records, config *storagebackend.ConfigForResource, newFunc, newListFunc func() runtime.Object, resourcePrefix string, transformer value.Transformer, decoder etcd3.Decoder) (*store, factory.DestroyFunc, error) {
	r.resource, r.prefix = config.GroupResource.String(), strings.TrimSuffix(resourcePrefix, "/")+"/"
	ctx, cancel := context.WithCancel(context.Background())
	etcd := clientv3.NewCtxClient(ctx)
	etcd.KV, etcd.Watcher, etcd.Lease = keyValues{records: r}, watcher{r}, leases{}
	inner, err := etcd3.New(&kubernetes.Client{Client: etcd, Kubernetes: r}, nil, config.Codec, newFunc, newListFunc, "/", resourcePrefix, config.GroupResource, transformer, config.LeaseManagerConfig, decoder, storage.APIObjectVersioner{})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	var once sync.Once
	return &store{inner}, func() {
		once.Do(func() {
			inner.Close()
			cancel()
		})
	}, nil
}

// store demands of the records what a request needs of them: the host has more than one way to answer, and not each has all.
type store struct{ storage.Interface }

// Get implements storage.Interface.
func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		ctx = demanding(ctx, revisions)
	}
	return s.Interface.Get(ctx, key, opts, out)
}

// GetList implements storage.Interface.
func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.Interface.GetList(demanding(ctx, revisions), key, opts, list)
}

// GetCurrentResourceVersion implements storage.Interface.
func (s *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return s.Interface.GetCurrentResourceVersion(demanding(ctx, revisions))
}

// EnableResourceSizeEstimation implements storage.Interface. Sizes are not estimated: that compares what is stored with a watch cache that
// is up to date, for which a host has no progress on request. Nothing here is limited by them.
func (s *store) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// Watch implements storage.Interface. Values that were replaced are read for those alone who choose among objects; the watch cache
// does not.
func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	ctx = demanding(ctx, revisions)
	if !opts.Predicate.Empty() {
		ctx = demanding(ctx, previous)
	}
	return s.Interface.Watch(ctx, key, opts)
}
