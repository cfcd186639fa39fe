package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// RESTOptions returns options by which resources are stored as records, and otherwise as the flags of etcd configure.
func RESTOptions(etcd *genericoptions.EtcdOptions, client rest.Interface, mac *MAC) generic.RESTOptionsGetter {
	return options{etcd.CreateRESTOptionsGetter(&genericoptions.SimpleStorageFactory{StorageConfig: etcd.StorageConfig}, nil), client, mac, etcd}
}

type options struct {
	generic.RESTOptionsGetter
	client rest.Interface
	mac    *MAC
	etcd   *genericoptions.EtcdOptions
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (o options) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	given, err := o.RESTOptionsGetter.GetRESTOptions(resource, example)
	given.Decorator = o.decorate
	return given, err
}

// cached reports whether a resource has a watch cache.
func (o options) cached(resource schema.GroupResource) bool {
	sizes, err := genericoptions.ParseWatchCacheSizes(o.etcd.WatchCacheSizes)
	size, given := sizes[resource]
	return o.etcd.EnableWatchCache && err == nil && (!given || size > 0)
}

// decorate makes the storage of a resource, with the watch cache of k8s.io/apiserver in front of it.
func (o options) decorate(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	stored, destroy, err := New(o.client, o.mac, config, newFunc, newListFunc, prefix)
	if err != nil || !o.cached(config.GroupResource) {
		return stored, destroy, err
	}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: stored, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource, EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix: prefix, KeyFunc: key, NewFunc: newFunc, NewListFunc: newListFunc, GetAttrsFunc: attributes, IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
	})
	if err != nil {
		destroy()
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(cached, stored)
	return delegator, func() {
		delegator.Stop()
		cached.Stop()
		destroy()
	}, nil
}

// Await returns once the host cluster serves records to this client. A definition that was just made takes a moment.
func Await(ctx context.Context, client rest.Interface) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := client.Get().AbsPath(path).Param("limit", "1").Do(ctx).Error(); err != nil {
			last = err
			return false, nil
		}
		return true, nil
	})
	if last != nil && err != nil {
		err = last
	}
	if err != nil {
		return fmt.Errorf("read the records of the storage: %w; the cluster needs the definition records.%s and this server's rights on them, of deploy/base/36-records.yaml", err, Group)
	}
	return nil
}
