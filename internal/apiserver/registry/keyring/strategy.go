// Package keyring stores KeyRing objects and carries out requests about their keys. In go requests that the API machinery
// has authorized, out come stored objects and changes of the ring in the key store. It never sees a private key, and
// decides nothing about keys: package keys does.
package keyring

import (
	"cmp"
	"context"
	"fmt"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type strategy struct {
	stored.Strategy
	issuer string
}

var (
	_ rest.ResetFieldsStrategy = strategy{}
	_ rest.RESTUpdateStrategy  = statusStrategy{}
)

func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	obj.(*v1alpha1.KeyRing).Status.Issuer = s.issuer
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.KeyRing))
}

// PrepareForUpdate keeps the status: it is a subresource.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.KeyRing), old.(*v1alpha1.KeyRing)
	after.Status = before.Status
	stored.SetGeneration(after, before, !equality.Semantic.DeepEqual(after.Spec, before.Spec))
}

func (strategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.KeyRing))
}

// WarningsOnUpdate names unknown keys: a relying party that knows only those holds up every rotation.
func (strategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return unknownKeys(obj.(*v1alpha1.KeyRing))
}

// GetResetFields keeps server-side apply from owning what the server sets.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return stored.ResetField(v1alpha1.SchemeGroupVersion, "status")
}

// statusStrategy is that of the subresource status: nothing else changes.
type statusStrategy struct{ strategy }

func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.KeyRing), old.(*v1alpha1.KeyRing)
	status, fields, version := after.Status, after.ManagedFields, after.ResourceVersion
	*after = *before.DeepCopy()
	after.Status, after.ManagedFields, after.ResourceVersion = status, fields, version
	after.Status.Issuer = cmp.Or(after.Status.Issuer, s.issuer)
}

// ValidateUpdate keeps the issuer: by it an API server knows its storage. Another installation may have taken the storage over.
func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	for _, ring := range []runtime.Object{old, obj} {
		if issuer := ring.(*v1alpha1.KeyRing).Status.Issuer; issuer != "" && issuer != s.issuer {
			return field.ErrorList{field.Invalid(field.NewPath("status", "issuer"), issuer, fmt.Sprintf("must be %s, the issuer of this API server: each installation needs a storage of its own", s.issuer))}
		}
	}
	return nil
}

func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return stored.ResetField(v1alpha1.SchemeGroupVersion, "spec")
}

// ownerStrategy is that of an API server which records its issuer.
type ownerStrategy struct{ statusStrategy }

func (ownerStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
