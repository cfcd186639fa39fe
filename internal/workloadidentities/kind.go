package workloadidentities

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// object is an object of a kind that is followed.
type object interface {
	metav1.Object
	runtime.Object
}

// kind is a kind that is followed.
type kind[T object] struct {
	resource string
	object   func() T
	list     func() runtime.Object
	// same reports whether nothing has changed that a reader depends on.
	same func(before, after T) bool
}

func identityKind() kind[*v1alpha1.WorkloadIdentity] {
	return kind[*v1alpha1.WorkloadIdentity]{
		resource: resource,
		object:   func() *v1alpha1.WorkloadIdentity { return &v1alpha1.WorkloadIdentity{} },
		list:     func() runtime.Object { return &v1alpha1.WorkloadIdentityList{} },
		// Reports of its delivery and labels do not matter.
		same: func(a, b *v1alpha1.WorkloadIdentity) bool {
			return a.UID == b.UID && a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil)
		},
	}
}

func bindingKind() kind[*v1alpha1.CredentialsBinding] {
	return kind[*v1alpha1.CredentialsBinding]{
		resource: "credentialsbindings",
		object:   func() *v1alpha1.CredentialsBinding { return &v1alpha1.CredentialsBinding{} },
		list:     func() runtime.Object { return &v1alpha1.CredentialsBindingList{} },
		same: func(a, b *v1alpha1.CredentialsBinding) bool {
			return a.UID == b.UID && reflect.DeepEqual(a.WorkloadIdentityRef, b.WorkloadIdentityRef) && reflect.DeepEqual(a.SecretRef, b.SecretRef)
		},
	}
}

func (k kind[T]) get(ctx context.Context, c client, namespace, name string) (T, error) {
	found := k.object()
	err := c.rest.Get().Namespace(namespace).Resource(k.resource).Name(name).Do(ctx).Into(found)
	if err != nil {
		var none T
		return none, err
	}
	return found, nil
}

// in lists and watches the objects of one namespace.
func (k kind[T]) in(c client, namespace string) namespaced[T] { return namespaced[T]{c, k, namespace} }

type namespaced[T object] struct {
	client
	kind      kind[T]
	namespace string
}

// list and watch are the requests of a reflector.
func (n namespaced[T]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := n.kind.list()
	err := n.rest.Get().Namespace(n.namespace).Resource(n.kind.resource).VersionedParams(&options, n.parameters).Do(ctx).Into(list)
	return list, err
}

func (n namespaced[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return n.rest.Get().Namespace(n.namespace).Resource(n.kind.resource).VersionedParams(&options, n.parameters).Watch(ctx)
}
