// Package quota stores Quotas. In go requests that the API machinery has authorized, out come stored objects whose scope and limits are
// valid, with the status that the server reports. It counts nothing.
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
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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

var _ rest.ResetFieldsStrategy = strategy{}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.Strategy.PrepareForCreate(ctx, obj)
	obj.(*v1alpha1.Quota).Status = v1alpha1.QuotaStatus{}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	quota := obj.(*v1alpha1.Quota)
	errs := validation.ValidateObjectMeta(&quota.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateSpec(quota.Spec)...)
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, before := obj.(*v1alpha1.Quota), old.(*v1alpha1.Quota)
	after.Status = before.Status
	stored.SetGeneration(after, before, !equality.Semantic.DeepEqual(after.Spec, before.Spec))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	after, before := obj.(*v1alpha1.Quota), old.(*v1alpha1.Quota)
	return append(validateSpec(after.Spec), validation.ValidateImmutableField(after.Spec.Scope, before.Spec.Scope, field.NewPath("spec", "scope"))...)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return stored.ResetField(v1alpha1.SchemeGroupVersion, "status")
}

// statusStrategy lets the status change, and nothing else.
type statusStrategy struct{ strategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	after, status := obj.(*v1alpha1.Quota), obj.(*v1alpha1.Quota).Status
	old.(*v1alpha1.Quota).DeepCopyInto(after)
	after.Status = status
}

// ValidateUpdate implements rest.RESTUpdateStrategy: Quotas from before a rule have a status like others.
func (statusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
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
		{Name: "Used", Type: "string", Description: "How much the objects use together, of how much. Of a Quota for projects, what the namespace uses that uses most."},
		{Name: "Limits", Type: "string", Description: "How much the objects may use together."},
		{Name: "Age", Type: "string", Description: "Time since the Quota was created."},
	},
	Cells: func(quota *v1alpha1.Quota, name, age string) []any {
		return []any{name, quota.Spec.Scope.Kind, used(quota), limits(quota.Spec), age}
	},
}

// used is empty before the first report.
func used(quota *v1alpha1.Quota) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Metrics)) {
		if amount, ok := quota.Status.Used[name]; ok {
			limit := quota.Spec.Metrics[name]
			texts = append(texts, name+": "+amount.String()+"/"+limit.String())
		}
	}
	return strings.Join(texts, ", ")
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
