package contexts

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	authentication "github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/contextkind"
)

// Deliveries receives the objects of ContextKinds with deliveries. Calls for one Source are made in order, calls for several concurrently.
type Deliveries interface {
	// Follow begins a source, and is called again when its fault changes: the reason why nothing of it can be delivered.
	Follow(source Source, fault string)
	// Set is called for each object that comes or changes, and Delete for each that is gone.
	Set(source Source, object Placed)
	Delete(source Source, namespace, name string)
	// Filled is called after Set was called for all objects that exist: other objects of an earlier source of the resource are gone.
	Filled(source Source)
	// Forget ends a resource: nothing is delivered for its objects any more.
	Forget(resource schema.GroupResource)
}

// requested is the renewal of an object whose managed fields do not have the annotation.
const requested = "requested"

// Source is one list of a resource, and the watch that follows it.
type Source struct {
	Resource schema.GroupResource
	// List distinguishes it from others of the process.
	List uint64
}

// Placed is an object and what it needs in the workload clusters that it is on.
type Placed struct {
	Object     v1alpha1.DeliveryContext
	Clusters   []string
	Deliveries []contextkind.Delivery
	Created    time.Time
	// Renewal changes each time new tokens are requested, and is empty without a request.
	Renewal string
}

// deliver passes the present sources to Deliveries. It is called before new readers run.
func (f *Follower) deliver(now *landscape, started map[*objects]context.Context) {
	for _, kind := range now.kinds {
		reader := now.read[kind.Resource]
		if !kind.Delivers || reader == nil {
			continue
		}
		source := Source{kind.Resource.GroupResource(), reader.number}
		f.deliveries.Follow(source, kind.dispute())
		f.delivering.Insert(source.Resource)
		following := started[reader]
		if following == nil {
			continue
		}
		registration, err := reader.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(found any) { f.deliveries.Set(source, kind.placed(found.(*object))) },
			UpdateFunc: func(_, found any) { f.deliveries.Set(source, kind.placed(found.(*object))) },
			DeleteFunc: func(gone any) {
				if name, err := cache.DeletionHandlingObjectToName(gone); err == nil {
					f.deliveries.Delete(source, name.Namespace, name.Name)
				}
			},
		})
		if err != nil {
			klog.FromContext(following).Error(err, "What a ContextKind delivers is not known", "contextKind", kind.Name())
			continue
		}
		go func() {
			if cache.WaitForCacheSync(following.Done(), registration.HasSynced) {
				f.deliveries.Filled(source)
			}
		}()
	}
	// A kind that is invalid may be of any resource.
	for resource := range f.delivering {
		if len(now.invalid) == 0 && !now.delivers(resource) {
			f.deliveries.Forget(resource)
			f.delivering.Delete(resource)
		}
	}
}

func (l *landscape) delivers(resource schema.GroupResource) bool {
	for _, kind := range l.kinds {
		if kind.Delivers && kind.Resource.GroupResource() == resource {
			return true
		}
	}
	return false
}

// placed returns an object with its deliveries.
func (k *Kind) placed(kept *object) Placed {
	found := Placed{
		Object:   v1alpha1.DeliveryContext{APIVersion: k.Object.GroupVersion().String(), Kind: k.Object.Kind, Namespace: kept.Namespace, Name: kept.Name, UID: kept.UID},
		Clusters: kept.uses.Clusters, Deliveries: kept.uses.Deliveries, Created: kept.CreationTimestamp.Time, Renewal: kept.renewal,
	}
	if fault := k.mistaken(kept); fault != nil {
		found.Deliveries = slices.Clone(found.Deliveries)
		for i := range found.Deliveries {
			found.Deliveries[i].Fault = fault.Error()
		}
	}
	return found
}

// Delivering returns an API error (503) while deliveries are not known.
func (f *Follower) Delivering() error {
	current := f.current.Load()
	if current == nil {
		return unknown("the ContextKinds have not been read yet")
	}
	for _, invalid := range current.invalid {
		return unknown("%s", invalid)
	}
	for _, kind := range current.kinds {
		if !kind.Delivers {
			continue
		}
		reader := current.read[kind.Resource]
		if reader == nil {
			return unknown("%s are not followed", kind.Resource.GroupResource())
		}
		if err := reader.ready(); err != nil {
			return err
		}
	}
	return nil
}

// renewal is the time at which the annotation that requests new tokens was written, as far as the object has a record of it.
func renewal(object *unstructured.Unstructured) string {
	if object.GetAnnotations()[authentication.AnnotationOperation] != authentication.OperationRenewToken {
		return ""
	}
	written := requested
	for _, entry := range object.GetManagedFields() {
		var owned struct {
			Metadata struct {
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if entry.FieldsV1 == nil || entry.Time == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if at := entry.Time.UTC().Format(time.RFC3339); owned.Metadata.Annotations["f:"+authentication.AnnotationOperation] != nil && (written == requested || at > written) {
			written = at
		}
	}
	return written
}
