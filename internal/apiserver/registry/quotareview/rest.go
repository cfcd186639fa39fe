// Package quotareview serves QuotaReviews. In goes a write of a context object that an admission webhook has to decide on, out comes whether
// Quotas allow it, with what it needs reserved. It stores no review.
package quotareview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/quotas"
)

// Keeper keeps Quotas. Its errors are API errors.
type Keeper interface {
	Admit(ctx context.Context, w quotas.Write) (refused string, err error)
	Destroy()
}

// REST serves the resource quotareviews.
type REST struct{ keeper Keeper }

var (
	_ rest.Storage              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.Creater              = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns the resource.
func NewREST(keeper Keeper) *REST { return &REST{keeper} }

// New implements rest.Storage.
func (*REST) New() runtime.Object { return &v1alpha1.QuotaReview{} }

// Destroy implements rest.Storage.
func (r *REST) Destroy() { r.keeper.Destroy() }

// NamespaceScoped implements rest.Scoper.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*REST) GetSingularName() string { return "quotareview" }

// Create reviews a write, and reserves what it needs.
func (r *REST) Create(ctx context.Context, obj runtime.Object, admit rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, ok := obj.(*v1alpha1.QuotaReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not a QuotaReview", obj))
	}
	review := created.DeepCopy()
	review.Status, review.ManagedFields = v1alpha1.QuotaReviewStatus{}, nil
	if admit != nil {
		if err := admit(ctx, review.DeepCopy()); err != nil {
			return nil, err
		}
	}
	write, errs := writeOf(review.Spec)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("QuotaReview").GroupKind(), review.Name, errs)
	}
	write.DryRun = write.DryRun || options != nil && len(options.DryRun) > 0
	refused, err := r.keeper.Admit(ctx, write)
	if err != nil {
		return nil, err
	}
	review.Status.Allowed, review.Status.Refused = refused == "", refused
	return review, nil
}

func writeOf(spec v1alpha1.QuotaReviewSpec) (quotas.Write, field.ErrorList) {
	path := field.NewPath("spec")
	write := quotas.Write{Request: spec.Request, Resource: schema.GroupResource{Group: spec.Group, Resource: spec.Resource}, DryRun: spec.DryRun}
	var errs field.ErrorList
	if spec.Request == "" {
		errs = append(errs, field.Required(path.Child("request"), "the uid of the admission request"))
	}
	if spec.Resource == "" {
		errs = append(errs, field.Required(path.Child("resource"), "the resource of the object"))
	}
	read := func(raw []byte, at *field.Path) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			errs = append(errs, field.Invalid(at, "", "is not an object with apiVersion and kind: "+err.Error()))
		} else if object.GetName() == "" {
			errs = append(errs, field.Required(at.Child("metadata", "name"), ""))
		}
		return object
	}
	write.Object = read(spec.Object.Raw, path.Child("object"))
	if spec.OldObject != nil {
		write.Old = read(spec.OldObject.Raw, path.Child("oldObject"))
	}
	return write, errs
}
