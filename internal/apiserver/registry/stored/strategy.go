package stored

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy is how objects of every kind are written. A kind embeds it, and adds what it prepares and validates.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator

	namespaced bool
}

// NewStrategy returns the Strategy of a kind.
func NewStrategy(typer runtime.ObjectTyper, namespaced bool) Strategy {
	return Strategy{typer, names.SimpleNameGenerator, namespaced}
}

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s Strategy) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy. A server-side apply creates nevertheless.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
func (Strategy) Canonicalize(runtime.Object) {}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(metav1.Object).SetGeneration(1)
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// SetGeneration gives an update the generation of the object before it, or the next one if the spec was changed.
func SetGeneration(after, before metav1.Object, changed bool) {
	generation := before.GetGeneration()
	if changed {
		generation++
	}
	after.SetGeneration(generation)
}

// ResetField keeps server-side apply from owning a field that the server sets.
func ResetField(version schema.GroupVersion, name string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(version.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(name))}
}
