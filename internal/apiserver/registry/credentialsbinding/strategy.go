// Package credentialsbinding stores CredentialsBindings. In go requests that the API machinery has authorized, out come stored objects whose
// references their writers were allowed to make. It never reads a Secret.
package credentialsbinding

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

type strategy struct{ stored.Strategy }

func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	complete(obj.(*v1alpha1.CredentialsBinding))
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.CredentialsBinding))
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.CredentialsBinding), old.(*v1alpha1.CredentialsBinding)
	complete(after)
	stored.SetGeneration(after, before, !sameReferences(after, before))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateUpdate(obj.(*v1alpha1.CredentialsBinding), old.(*v1alpha1.CredentialsBinding))
}

// complete sets the namespaces that references leave out.
func complete(binding *v1alpha1.CredentialsBinding) {
	for _, reference := range []*v1alpha1.CredentialsReference{binding.SecretRef, binding.WorkloadIdentityRef} {
		if reference != nil && reference.Namespace == "" {
			reference.Namespace = binding.Namespace
		}
	}
	for i := range binding.Quotas {
		if each := &binding.Quotas[i]; each.Namespace == "" {
			each.Namespace = binding.Namespace
		}
	}
}

// sameReferences reports whether two versions of a binding refer to the same credentials.
func sameReferences(a, b *v1alpha1.CredentialsBinding) bool {
	return reflect.DeepEqual(a.SecretRef, b.SecretRef) && reflect.DeepEqual(a.WorkloadIdentityRef, b.WorkloadIdentityRef)
}
