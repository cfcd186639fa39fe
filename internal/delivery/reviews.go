package delivery

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/tokensecret"
)

// AccessReviews queries the authorizer of the workload cluster.
type AccessReviews struct {
	Client authorizationclient.SubjectAccessReviewInterface
}

// MayUse implements Reviews.
func (a AccessReviews) MayUse(ctx context.Context, user tokensecret.User, identity types.NamespacedName) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = values
	}
	review, err := a.Client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Name, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "use", Group: v1alpha1.GroupName, Version: "v1alpha1", Resource: "workloadidentities",
			Namespace: identity.Namespace, Name: identity.Name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review whether %s may use WorkloadIdentity %s: %w", user.Name, identity, err)
	}
	if !review.Status.Allowed && review.Status.EvaluationError != "" {
		return false, fmt.Errorf("review whether %s may use WorkloadIdentity %s: %s", user.Name, identity, review.Status.EvaluationError)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
