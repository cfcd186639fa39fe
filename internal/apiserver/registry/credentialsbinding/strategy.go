// Package credentialsbinding stores CredentialsBindings. In go requests that the API machinery has authorized, out come stored objects whose
// references their writers were allowed to make. It never reads a Secret.
package credentialsbinding

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
)

type strategy struct{ stored.Strategy }

func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	binding := obj.(*v1alpha1.CredentialsBinding)
	complete(binding)
	binding.Status = v1alpha1.CredentialsBindingStatus{Writer: writerOf(ctx)}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.CredentialsBinding))
}

func (strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.CredentialsBinding), old.(*v1alpha1.CredentialsBinding)
	complete(after)
	changed := !sameReferences(after, before)
	stored.SetGeneration(after, before, changed)
	after.Status = before.Status
	if changed {
		after.Status = v1alpha1.CredentialsBindingStatus{Writer: writerOf(ctx), Deliveries: before.Status.Deliveries}
	}
	hold(after, holds(before)) // a manifest lacks the finalizer
	if changed && after.WorkloadIdentityRef != nil {
		after.Status.Account = before.Status.Account
	}
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return stored.ResetField(v1alpha1.SchemeGroupVersion, "status")
}

// statusStrategy lets status and finalizers change, and nothing else.
type statusStrategy struct{ strategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after := obj.(*v1alpha1.CredentialsBinding)
	status, finalizers := after.Status, after.Finalizers
	old.(*v1alpha1.CredentialsBinding).DeepCopyInto(after)
	after.Status, after.Finalizers = status, finalizers
}

// ValidateUpdate implements rest.RESTUpdateStrategy: bindings from before a rule have a status like others.
func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// writerOf is the user who makes a request.
func writerOf(ctx context.Context) *v1alpha1.CredentialsWriter {
	writer, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	return &v1alpha1.CredentialsWriter{Username: writer.GetName(), UID: writer.GetUID(), Groups: writer.GetGroups()}
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
