// Package workloadidentity stores WorkloadIdentity objects. In go requests that the API machinery has authorized, out
// come stored objects whose status names subject and issuer. It never issues tokens.
package workloadidentity

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/targets"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type strategy struct {
	stored.Strategy
	issuer identity.Issuer
}

var _ rest.ResetFieldsStrategy = strategy{}

// PrepareForCreate sets the status, whatever the client sent: by now the server has assigned name, namespace and uid.
// A subject that is not allowed stays empty; Validate reports it.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	wi := obj.(*v1alpha1.WorkloadIdentity)
	wi.Spec.TargetSystem.ProviderConfig = canonical(wi.Spec.TargetSystem.ProviderConfig)
	wi.Status = v1alpha1.WorkloadIdentityStatus{Issuer: string(s.issuer)}
	if subject, err := identity.NewSubject(wi.Namespace, wi.Name, string(wi.UID)); err == nil {
		wi.Status.Sub = string(subject)
	}
	settle(wi, wi.CreationTimestamp.Time)
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.WorkloadIdentity))
}

// PrepareForUpdate keeps the status: subject and issuer never change, and the rest is reported. The finalizer for bindings is taken off only
// once the identity is being deleted: a manifest lacks it.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newWI, oldWI := obj.(*v1alpha1.WorkloadIdentity), old.(*v1alpha1.WorkloadIdentity)
	newWI.Status = oldWI.Status
	if holds(oldWI) && oldWI.DeletionTimestamp == nil && !holds(newWI) {
		newWI.Finalizers = append(newWI.Finalizers, v1alpha1.FinalizerBindings)
	}
	newWI.Spec.TargetSystem.ProviderConfig = canonical(newWI.Spec.TargetSystem.ProviderConfig)
	stored.SetGeneration(newWI, oldWI, !equality.Semantic.DeepEqual(newWI.Spec, oldWI.Spec))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateUpdate(obj.(*v1alpha1.WorkloadIdentity), old.(*v1alpha1.WorkloadIdentity))
}

// WarningsOnCreate names an unknown target system, as its type cannot be changed later, and settings that a
// known one will hardly accept.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	spec := obj.(*v1alpha1.WorkloadIdentity).Spec
	if kind := spec.TargetSystem.Type; !targets.Known(kind) {
		return []string{fmt.Sprintf("spec.targetSystem.type: %q is not a known target system (%s); its tokens are signed with %s, and the type cannot be changed later",
			kind, strings.Join(targets.Types(), ", "), targets.Algorithm(kind))}
	}
	return warnings(spec)
}

// WarningsOnUpdate warns users who change the spec, and not controllers that change metadata.
func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	newWI, oldWI := obj.(*v1alpha1.WorkloadIdentity), old.(*v1alpha1.WorkloadIdentity)
	if equality.Semantic.DeepEqual(newWI.Spec, oldWI.Spec) {
		return nil
	}
	return warnings(newWI.Spec)
}

// GetResetFields keeps server-side apply from owning what the server sets.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return stored.ResetField(v1alpha1.SchemeGroupVersion, "status")
}

// TargetTypeField is the field by which identities can be selected, besides name and namespace.
const TargetTypeField = "spec.targetSystem.type"

// deletingField selects those that are being deleted. Requests cannot name it.
const deletingField = "deleting"

func selectableFields(wi *v1alpha1.WorkloadIdentity) fields.Set {
	return fields.Set{
		"metadata.name":      wi.Name,
		"metadata.namespace": wi.Namespace,
		TargetTypeField:      wi.Spec.TargetSystem.Type,
		deletingField:        strconv.FormatBool(wi.DeletionTimestamp != nil),
	}
}
