package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/decision"
)

// Quotas reviews writes of context objects, once each, and reserves what they need.
type Quotas interface {
	Review(ctx context.Context, spec identityv1alpha1.QuotaReviewSpec) (*identityv1alpha1.QuotaReviewStatus, error)
}

// LiveQuotas reviews by the API of a cluster.
func LiveQuotas(config *rest.Config) (Quotas, error) {
	scheme := runtime.NewScheme()
	if err := identityv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &identityv1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return liveQuotas{client}, nil
}

type liveQuotas struct{ client rest.Interface }

func (l liveQuotas) Review(ctx context.Context, spec identityv1alpha1.QuotaReviewSpec) (*identityv1alpha1.QuotaReviewStatus, error) {
	review := &identityv1alpha1.QuotaReview{TypeMeta: metav1.TypeMeta{APIVersion: identityv1alpha1.SchemeGroupVersion.String(), Kind: "QuotaReview"}, Spec: spec}
	answer := &identityv1alpha1.QuotaReview{}
	if err := l.client.Post().MaxRetries(0).Resource("quotareviews").Body(review).Do(ctx).Into(answer); err != nil {
		return nil, err
	}
	return &answer.Status, nil
}

// quotaReviews refuses writes of context objects that would exceed a Quota, and those of which that is not known.
func quotaReviews(needs Needs) decider[map[string]any] {
	return func(ctx context.Context, r *request[map[string]any]) (answer, error) {
		if r.Object == nil || r.Operation != admissionv1.Create && (r.Operation != admissionv1.Update || r.OldObject == nil) {
			return wrong("this webhook is for CREATE and UPDATE of context objects, not for %s of %s", r.Operation, r.about()), nil
		}
		spec := identityv1alpha1.QuotaReviewSpec{Request: r.UID, Group: r.Resource.Group, Resource: r.Resource.Resource, DryRun: r.DryRun}
		object, err := withoutManagers(*r.Object)
		if err != nil {
			return answer{}, err
		}
		spec.Object = *object
		if r.OldObject != nil {
			if spec.OldObject, err = withoutManagers(*r.OldObject); err != nil {
				return answer{}, err
			}
		}
		status, err := needs.Quotas.Review(ctx, spec)
		switch {
		case apierrors.IsAlreadyExists(err):
			return refused(&decision.Denial{Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists, Message: err.Error()}), nil
		case err != nil:
			return answer{}, fmt.Errorf("review Quotas: %w", err)
		case !status.Allowed:
			return refused(&decision.Denial{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: status.Refused}), nil
		}
		return answer{}, nil
	}
}

// withoutManagers is an object without what is the largest part of many, and counts for nothing.
func withoutManagers(object map[string]any) (*runtime.RawExtension, error) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
