// Package keyring stores KeyRing objects and carries out requests about their keys. In go requests that the API machinery
// has authorized, out come stored objects and changes of the ring in the key store. It never sees a private key, and
// decides nothing about keys: package keys does.
package keyring

import (
	"context"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
)

func (strategy) NamespaceScoped() bool                         { return false }
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }
func (strategy) Canonicalize(runtime.Object)                   {}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(*v1alpha1.KeyRing).Generation = 1
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.KeyRing))
}

// PrepareForUpdate keeps the status: it is a subresource.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.KeyRing), old.(*v1alpha1.KeyRing)
	after.Status = before.Status
	after.Generation = before.Generation
	if !equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		after.Generation++
	}
}

func (strategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.KeyRing))
}

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate names unknown keys: a relying party that knows only those holds up every rotation.
func (strategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return unknownKeys(obj.(*v1alpha1.KeyRing))
}

// GetResetFields keeps server-side apply from owning what the server sets.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetting("status")
}

// statusStrategy is that of the subresource status: nothing else changes.
type statusStrategy struct{ strategy }

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.KeyRing), old.(*v1alpha1.KeyRing)
	status, fields, version := after.Status, after.ManagedFields, after.ResourceVersion
	*after = *before.DeepCopy()
	after.Status, after.ManagedFields, after.ResourceVersion = status, fields, version
}

func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetting("spec")
}

func resetting(fieldName string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(fieldName)),
	}
}
