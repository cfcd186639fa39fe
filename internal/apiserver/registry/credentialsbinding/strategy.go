// Package credentialsbinding stores CredentialsBindings. In go requests that the API machinery has authorized, out come stored objects whose
// references their writers were allowed to make. It never reads a Secret.
package credentialsbinding

import (
	"context"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	dropReplaced(after, before)
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

// dropReplaced takes off the reference that a server-side apply replaces by the other one. Apply keeps a field that another manager owns, such as
// a client-side apply before, so that the binding would have both. All other writes with both are refused. The rights of the writer to both are reviewed.
func dropReplaced(after, before *v1alpha1.CredentialsBinding) {
	switch {
	case after.SecretRef == nil || after.WorkloadIdentityRef == nil:
	case before.WorkloadIdentityRef == nil && before.SecretRef != nil && applied(after, "f:workloadIdentityRef", "f:secretRef"):
		after.SecretRef = nil
	case before.SecretRef == nil && before.WorkloadIdentityRef != nil && applied(after, "f:secretRef", "f:workloadIdentityRef"):
		after.WorkloadIdentityRef = nil
	}
}

// applied reports whether a manager has applied a field, and does not own another one. Then it takes the other one off its owners.
func applied(binding *v1alpha1.CredentialsBinding, field, other string) bool {
	found := false
	var owners []*metav1.ManagedFieldsEntry
	for i := range binding.ManagedFields {
		entry, owned := &binding.ManagedFields[i], map[string]json.RawMessage{}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		found = found || entry.Operation == metav1.ManagedFieldsOperationApply && owned[field] != nil && owned[other] == nil
		if owned[other] != nil {
			owners = append(owners, entry)
		}
	}
	for _, entry := range owners {
		owned := map[string]json.RawMessage{}
		_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) // as above
		delete(owned, other)
		if text, err := json.Marshal(owned); found && err == nil {
			entry.FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
	return found
}

// sameReferences reports whether two versions of a binding refer to the same credentials.
func sameReferences(a, b *v1alpha1.CredentialsBinding) bool {
	return reflect.DeepEqual(a.SecretRef, b.SecretRef) && reflect.DeepEqual(a.WorkloadIdentityRef, b.WorkloadIdentityRef)
}
