package authority

import (
	"cmp"
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reviewer has the authorizer of a cluster review a right. An error is an outage, never a denial.
type Reviewer interface {
	Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)
}

// Answer is what an authorizer has decided.
type Answer struct {
	Allowed bool
	// Detail is the authorizer's reason if the subject is not allowed. It may be empty.
	Detail string
	// Undecided is an error within the authorizer, without which it might have allowed.
	Undecided string
}

// Ask has a question reviewed, now. An error is a review that could not be made.
func Ask(ctx context.Context, reviewer Reviewer, q Question) (Answer, error) {
	answer, err := ask(ctx, reviewer, q)
	return answer, failed(q, err)
}

func ask(ctx context.Context, reviewer Reviewer, q Question) (Answer, error) {
	status, err := reviewer.Review(ctx, q.Spec())
	switch {
	case err != nil:
		return Answer{}, err
	case status.Allowed && !status.Denied:
		return Answer{Allowed: true}, nil
	}
	return Answer{Detail: cmp.Or(status.Reason, status.EvaluationError), Undecided: status.EvaluationError}, nil
}

func failed(q Question, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("review whether %s: %w", q, err)
}

// Creator creates SubjectAccessReviews; the clients of Kubernetes do.
type Creator interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Cluster is the Reviewer of the cluster that a client is of.
func Cluster(client Creator) Reviewer { return cluster{client} }

type cluster struct{ client Creator }

func (c cluster) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	review, err := c.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return review.Status, nil
}
