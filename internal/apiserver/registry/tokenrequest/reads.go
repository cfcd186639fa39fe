package tokenrequest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/newer"
	"github.com/credence-id/credence/internal/apiserver/registry/credentialsbinding"
)

// reads are those of one review, which checks the requests of many callers: each identity and each binding is read once. Bindings are those of the
// watch cache.
type reads struct {
	identities Identities
	bindings   rest.Getter

	identity map[types.NamespacedName]answer[*v1alpha1.WorkloadIdentity]
	bound    map[types.NamespacedName]answer[*v1alpha1.CredentialsBinding]
}

type answer[T any] struct {
	found T
	err   error
}

func newReads(identities Identities, bindings rest.Getter) *reads {
	return &reads{
		identities: identities, bindings: bindings,
		identity: map[types.NamespacedName]answer[*v1alpha1.WorkloadIdentity]{}, bound: map[types.NamespacedName]answer[*v1alpha1.CredentialsBinding]{},
	}
}

// Identity implements Identities.
func (r *reads) Identity(ctx context.Context, name string) (*v1alpha1.WorkloadIdentity, error) {
	return once(r.identity, types.NamespacedName{Namespace: request.NamespaceValue(ctx), Name: name}, func() (*v1alpha1.WorkloadIdentity, error) {
		return r.identities.Identity(ctx, name)
	})
}

// Refers implements Bindings.
func (r *reads) Refers(ctx context.Context, binding, identity types.NamespacedName) (bool, error) {
	bound, err := r.binding(ctx, binding)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := newer.Check(bound); err != nil {
		return false, err
	}
	to := bound.WorkloadIdentityRef
	return credentialsbinding.Gives(bound) && to.Namespace == identity.Namespace && to.Name == identity.Name, nil
}

func (r *reads) binding(ctx context.Context, binding types.NamespacedName) (*v1alpha1.CredentialsBinding, error) {
	return once(r.bound, binding, func() (*v1alpha1.CredentialsBinding, error) {
		got, err := r.bindings.Get(request.WithNamespace(ctx, binding.Namespace), binding.Name, &metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		return got.(*v1alpha1.CredentialsBinding), nil
	})
}

func once[T any](known map[types.NamespacedName]answer[T], name types.NamespacedName, read func() (T, error)) (T, error) {
	got, ok := known[name]
	if !ok {
		got.found, got.err = read()
		known[name] = got
	}
	return got.found, got.err
}
