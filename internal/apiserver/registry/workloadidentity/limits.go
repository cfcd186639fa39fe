package workloadidentity

import (
	"context"
	"fmt"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// maxErrors is how many errors an answer has: the text of all of them costs the API machinery the square of their number.
const maxErrors = 20

// limited returns the first errors, each with little of the value that is wrong.
func limited(errs field.ErrorList) field.ErrorList {
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], field.Invalid(field.NewPath("metadata"), "", fmt.Sprintf("and %d more errors", more)))
	}
	for _, err := range errs {
		err.Field = wording.AbbreviateTo(err.Field, maxAudienceLength)
		if value, ok := err.BadValue.(string); ok {
			err.BadValue = wording.AbbreviateTo(value, maxAudienceLength)
		}
	}
	return errs
}

// Update implements rest.Updater. The API machinery validates metadata before it calls the strategy: metadata with too many errors
// is refused before that. A server-side apply may create.
func (r *REST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, rest.WrapUpdatedObjectInfo(info, expectGivenUID, checkMetadata), r.takingUID(create, options.DryRun, false), update, forceAllowCreate, options)
}

func checkMetadata(_ context.Context, obj, _ runtime.Object) (runtime.Object, error) {
	wi, ok := obj.(*v1alpha1.WorkloadIdentity)
	if !ok {
		return obj, nil
	}
	errs := validation.ValidateObjectMeta(&wi.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(errs) > maxErrors {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity").GroupKind(), wi.Name, limited(errs))
	}
	return obj, nil
}
