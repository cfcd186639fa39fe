// Package contextkind stores ContextKind objects. In go requests that the API machinery has authorized, out come stored objects whose
// expressions compile, of writers who may read what they name. It evaluates no expression, and reads no object of such a kind.
package contextkind

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	compile "github.com/credence-id/credence/internal/apiserver/contextkind"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/wording"
)

type strategy struct{ stored.Strategy }

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validate(obj.(*v1alpha1.ContextKind))
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.ContextKind), old.(*v1alpha1.ContextKind)
	stored.SetGeneration(after, before, !equality.Semantic.DeepEqual(after.Spec, before.Spec))
}

// ValidateUpdate checks a spec that is changed: one that was stored by a server that allowed more can still be labeled.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	after, before := obj.(*v1alpha1.ContextKind), old.(*v1alpha1.ContextKind)
	if equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		return nil
	}
	return append(validate(after), validation.ValidateImmutableField(after.Spec.Object, before.Spec.Object, field.NewPath("spec", "object"))...)
}

func validate(kind *v1alpha1.ContextKind) field.ErrorList {
	errs := validation.ValidateObjectMeta(&kind.ObjectMeta, false, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	_, found := compile.Compile(kind.Spec)
	if errs = append(errs, found...); len(errs) > 0 {
		return errs
	}
	if want := compile.Name(kind.Spec.Object); kind.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), wording.Abbreviate(kind.Name), "must be "+want+", the resource and its group: one ContextKind is for each resource"))
	}
	return errs
}
