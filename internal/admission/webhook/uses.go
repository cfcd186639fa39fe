package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

const (
	// usesKept is for how long a right that was taken away still counts; Kubernetes keeps its own reviews as long.
	usesKept = 10 * time.Second
	maxUses  = 4096
)

// use is a user, and an object that they may use or not.
type use struct {
	user subject
	// namespace is that of the object, or for a cluster-scoped one that of the pod.
	namespace, group, resource, name string
}

// subject is a user as the authorizer sees one.
type subject struct {
	name string
	// more is a userDetails as JSON, so that subjects can be compared.
	more string
}

type userDetails struct {
	UID    string                                `json:"uid,omitempty"`
	Groups []string                              `json:"groups,omitempty"`
	Extra  map[string]authorizationv1.ExtraValue `json:"extra,omitempty"`
}

func subjectOf(name string, details userDetails) subject {
	more, err := json.Marshal(details)
	if err != nil { // not of strings
		panic(err)
	}
	return subject{name: name, more: string(more)}
}

// accountSubject is a service account in the groups by which admission policies know it: a right of all who are authenticated would
// be one of every pod.
func accountSubject(namespace, account string) subject {
	return subjectOf("system:serviceaccount:"+namespace+":"+account, userDetails{Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}})
}

// uses are the reviews of rights. That a user is allowed is remembered for a moment; a denial is never remembered, so that a new
// right counts at once.
type uses struct {
	reviews *live[use, authorizationv1.SubjectAccessReviewStatus]
	now     func() time.Time

	mu      sync.Mutex
	allowed map[use]time.Time // until when
}

func newUses(authorizer Authorizer, now func() time.Time) *uses {
	s := &uses{now: now, allowed: map[use]time.Time{}}
	s.reviews = newLive(func(ctx context.Context, u use) (authorizationv1.SubjectAccessReviewStatus, error) {
		// Callers that waited for their turn are served by the review before them.
		if s.remembered(u) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
		}
		spec, err := u.spec()
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		asked := s.now()
		status, err := authorizer.Review(ctx, spec)
		if err == nil && status.Allowed && !status.Denied {
			s.remember(u, asked.Add(usesKept))
		}
		return status, err
	})
	return s
}

func (u use) spec() (authorizationv1.SubjectAccessReviewSpec, error) {
	var details userDetails
	if err := json.Unmarshal([]byte(u.user.more), &details); err != nil {
		return authorizationv1.SubjectAccessReviewSpec{}, fmt.Errorf("decode user %s: %w", u.user.name, err)
	}
	return authorizationv1.SubjectAccessReviewSpec{
		User: u.user.name, UID: details.UID, Groups: details.Groups, Extra: details.Extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "use", Group: u.group, Resource: u.resource, Namespace: u.namespace, Name: u.name},
	}, nil
}

func (u use) String() string {
	return fmt.Sprintf("%s may use %s %s in namespace %s", u.user.name, u.resource, u.name, u.namespace)
}

// allows reports whether the user is allowed to use the object, and the authorizer's reason if not. An error is a review that could not be made.
func (s *uses) allows(ctx context.Context, u use) (bool, string, error) {
	if s.remembered(u) {
		return true, "", nil
	}
	status, err := s.reviews.get(ctx, u)
	if err != nil {
		return false, "", fmt.Errorf("review whether %s: %w", u, err)
	}
	if !status.Allowed || status.Denied {
		detail := status.Reason
		if detail == "" {
			detail = status.EvaluationError
		}
		return false, detail, nil
	}
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
