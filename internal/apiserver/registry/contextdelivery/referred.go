package contextdelivery

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/storagewatch"
	"github.com/credence-id/credence/internal/tokensecret"
)

// referred follows the identities or bindings that objects refer to, in the server's own storage.
type referred struct {
	name     string
	informer cache.SharedIndexInformer
	filled   cache.InformerSynced
}

// referent is the part of an identity or a binding that is kept.
type referent struct {
	metav1.ObjectMeta
	identity identityNow
	binding  bindingNow
}

func followIdentities(storage storagewatch.Storage, index *Index) (*referred, error) {
	return newReferred("workloadidentities", storage, &v1alpha1.WorkloadIdentity{}, func(read any, kept *referent) {
		system := read.(*v1alpha1.WorkloadIdentity).Spec.TargetSystem
		config, err := tokensecret.Config(system.ProviderConfig)
		kept.identity = identityNow{provider: system.Type, config: string(config)}
		if err != nil {
			kept.identity.fault = fmt.Sprintf("WorkloadIdentity %s: %v", nameOfReferent(kept), err)
		}
	}, func(name types.NamespacedName, now *referent) {
		if now == nil {
			index.setIdentity(name, nil)
			return
		}
		index.setIdentity(name, &now.identity)
	})
}

func followBindings(storage storagewatch.Storage, index *Index) (*referred, error) {
	return newReferred("credentialsbindings", storage, &v1alpha1.CredentialsBinding{}, func(read any, kept *referent) {
		binding := read.(*v1alpha1.CredentialsBinding)
		kept.binding.provider = binding.Provider.Type
		if to := binding.WorkloadIdentityRef; to != nil {
			kept.binding.identity = types.NamespacedName{Namespace: to.Namespace, Name: to.Name}
		}
	}, func(name types.NamespacedName, now *referent) {
		if now == nil {
			index.setBinding(name, nil)
			return
		}
		index.setBinding(name, &now.binding)
	})
}

// newReferred returns a follower of a resource. keep returns the needed part of an object, and set is called with each that appears or
// changes, or with nil when it is gone.
func newReferred(name string, storage storagewatch.Storage, example runtime.Object, keep func(any, *referent), set func(types.NamespacedName, *referent)) (*referred, error) {
	informer := cache.NewSharedIndexInformer(storagewatch.Source(storage), example, 0, cache.Indexers{})
	if err := informer.SetTransform(func(read any) (any, error) {
		object, ok := read.(metav1.Object)
		if _, done := read.(*referent); done || !ok {
			return read, nil
		}
		kept := &referent{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}
		keep(read, kept)
		return kept, nil
	}); err != nil {
		return nil, fmt.Errorf("follow %s: %w", name, err)
	}
	changed := func(found any) { now := found.(*referent); set(nameOfReferent(now), now) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, found any) { changed(found) },
		DeleteFunc: func(gone any) {
			if found, err := cache.DeletionHandlingObjectToName(gone); err == nil {
				set(types.NamespacedName{Namespace: found.Namespace, Name: found.Name}, nil)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", name, err)
	}
	return &referred{name, informer, registration.HasSynced}, nil
}

func nameOfReferent(kept *referent) types.NamespacedName {
	return types.NamespacedName{Namespace: kept.Namespace, Name: kept.Name}
}

func (r *referred) run(ctx context.Context) { r.informer.RunWithContext(ctx) }
