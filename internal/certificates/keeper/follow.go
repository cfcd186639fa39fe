package keeper

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/internal/certificates"
)

// follow has every change nudge. Each object has a watch of its own, by its name, as the right to it is one by name, and of its metadata
// alone, so that no key is kept in memory.
func (k *Keeper) follow(ctx context.Context) *sync.WaitGroup {
	secret := reference{resource: corev1.SchemeGroupVersion.WithResource("secrets"), namespace: k.Namespace}
	all := callers()
	secret.name = certificates.AuthoritySecret
	all = append(all, secret)
	for _, wanted := range k.Wanted {
		secret.name = wanted.Secret()
		all = append(all, secret)
	}
	nudge := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { k.nudge() }, UpdateFunc: func(any, any) { k.nudge() }, DeleteFunc: func(any) { k.nudge() },
	}
	var running sync.WaitGroup
	for _, each := range all {
		informer := metadatainformer.NewFilteredMetadataInformer(k.Metadata, each.resource, each.namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
			options.FieldSelector = "metadata.name=" + each.name
		}).Informer()
		_, _ = informer.AddEventHandler(nudge) // it fails for one that has stopped
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	return &running
}
