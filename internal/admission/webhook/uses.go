package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

const (
	// usesKept is for how long a right that was taken away is still believed; Kubernetes keeps its own reviews as long.
	usesKept = 10 * time.Second
	maxUses  = 4096
)

// use is a service account and an identity of its namespace.
type use struct{ namespace, account, identity string }

// uses says which service accounts may use which identities. That one may is remembered for a moment; that it may not, never:
// whoever grants the right is to see that at once.
type uses struct {
	reviews *live[use, authorizationv1.SubjectAccessReviewStatus]
	now     func() time.Time

	mu      sync.Mutex
	allowed map[use]time.Time // until when
}

func newUses(authorizer Authorizer, now func() time.Time) *uses {
	return &uses{now: now, allowed: map[use]time.Time{}, reviews: newLive(func(ctx context.Context, u use) (authorizationv1.SubjectAccessReviewStatus, error) {
		return authorizer.Review(ctx, u.spec())
	})}
}

// spec is the question, asked in the service account's name with the groups that Kubernetes gives it.
func (u use) spec() authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + u.namespace + ":" + u.account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + u.namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "use", Group: v1alpha1.GroupName, Resource: "workloadidentities", Namespace: u.namespace, Name: u.identity,
		},
	}
}

// may says whether it may, and what the authorizer said where it may not. An error is a review that could not be made.
func (s *uses) may(ctx context.Context, u use) (bool, string, error) {
	if s.remembered(u) {
		return true, "", nil
	}
	asked := s.now()
	status, err := s.reviews.get(ctx, u)
	if err != nil {
		return false, "", fmt.Errorf("review whether service account %s/%s may use workload identity %s: %w", u.namespace, u.account, u.identity, err)
	}
	if !status.Allowed || status.Denied {
		detail := status.Reason
		if detail == "" {
			detail = status.EvaluationError
		}
		return false, detail, nil
	}
	s.remember(u, asked.Add(usesKept))
	return true, "", nil
}

func (s *uses) remembered(u use) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, known := s.allowed[u]
	return known && s.now().Before(until)
}

func (s *uses) remember(u use, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.allowed) >= maxUses {
		s.forget()
	}
	s.allowed[u] = until
}

// forget drops what is over; if that is nothing, everything, which costs no more than reviews.
func (s *uses) forget() {
	now := s.now()
	for u, until := range s.allowed {
		if !now.Before(until) {
			delete(s.allowed, u)
		}
	}
	if len(s.allowed) >= maxUses {
		clear(s.allowed)
	}
}
