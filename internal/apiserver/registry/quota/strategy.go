// Package quota stores Quotas. In go requests that the API machinery has authorized, out come stored objects whose scope and limits are
// valid. It counts nothing.
package quota

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/registry/stored"
	"github.com/credence-id/credence/internal/wording"
)

const (
	maxMetrics = 20
	maxDays    = 36500
)

// ofProjects is the scope that adds up the objects of each namespace.
var ofProjects = v1alpha1.QuotaScope{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"}

// ofCredentials are those that add up all objects.
var ofCredentials = []v1alpha1.QuotaScope{
	{APIVersion: "v1", Kind: "Secret"},
	{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkloadIdentity"},
	{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CredentialsBinding"},
}

// OfProjects reports whether a Quota limits what the objects of each namespace use, and not all objects together.
func OfProjects(quota *v1alpha1.Quota) bool { return quota.Spec.Scope == ofProjects }

type strategy struct{ stored.Strategy }

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	quota := obj.(*v1alpha1.Quota)
	errs := validation.ValidateObjectMeta(&quota.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateSpec(quota.Spec)...)
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.Quota), old.(*v1alpha1.Quota)
	stored.SetGeneration(after, before, !equality.Semantic.DeepEqual(after.Spec, before.Spec))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	after, before := obj.(*v1alpha1.Quota), old.(*v1alpha1.Quota)
	return append(validateSpec(after.Spec), validation.ValidateImmutableField(after.Spec.Scope, before.Spec.Scope, field.NewPath("spec", "scope"))...)
}

func validateSpec(spec v1alpha1.QuotaSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if spec.Scope != ofProjects && !slices.Contains(ofCredentials, spec.Scope) {
		var supported []string
		for _, each := range append(slices.Clone(ofCredentials), ofProjects) {
			supported = append(supported, each.APIVersion+" "+each.Kind)
		}
		errs = append(errs, field.NotSupported(path.Child("scope"), wording.Abbreviate(spec.Scope.APIVersion+" "+spec.Scope.Kind), supported))
	}
	if days := spec.ClusterLifetimeDays; days != nil && (*days < 1 || *days > maxDays) {
		errs = append(errs, field.Invalid(path.Child("clusterLifetimeDays"), *days, "must be 1 to 36500"))
	}
	if n := len(spec.Metrics); n > maxMetrics {
		return append(errs, field.TooMany(path.Child("metrics"), n, maxMetrics))
	}
	if len(spec.Metrics) == 0 && spec.ClusterLifetimeDays == nil {
		errs = append(errs, field.Required(path.Child("metrics"), "set metrics, clusterLifetimeDays, or both: this Quota would limit nothing"))
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Metrics)) {
		at := path.Child("metrics").Key(wording.Abbreviate(name))
		for _, message := range utilvalidation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(at, wording.Abbreviate(name), message))
		}
		if limit := spec.Metrics[name]; limit.Sign() < 0 {
			errs = append(errs, field.Invalid(at, limit.String(), "must not be negative"))
		}
	}
	return errs
}

var table = stored.Table[*v1alpha1.Quota]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the Quota."},
		{Name: "Scope", Type: "string", Description: "Kind of what it is for."},
		{Name: "Limits", Type: "string", Description: "How much the objects may use together."},
		{Name: "Age", Type: "string", Description: "Time since the Quota was created."},
	},
	Cells: func(quota *v1alpha1.Quota, name, age string) []any {
		return []any{name, quota.Spec.Scope.Kind, limits(quota.Spec), age}
	},
}

func limits(spec v1alpha1.QuotaSpec) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(spec.Metrics)) {
		limit := spec.Metrics[name]
		texts = append(texts, name+": "+limit.String())
	}
	if spec.ClusterLifetimeDays != nil {
		texts = append(texts, wording.Plural(int(*spec.ClusterLifetimeDays), "day", "days"))
	}
	return strings.Join(texts, ", ")
}
