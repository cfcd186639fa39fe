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
	// usesKept is for how long a right that was taken away is still believed; Kubernetes keeps its own reviews as long.
	usesKept = 10 * time.Second
	maxUses  = 4096
)

// use is a user, and an object that they may use or not.
type use struct {
	user subject
	// namespace is where it is asked: that of the object, or for one that has none that of the pod.
	namespace, group, resource, name string
}

// subject is a user as the authorizer knows one.
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

// uses says who may use what. That one may is remembered for a moment; that one may not, never: whoever grants the right is to
// see that at once.
type uses struct {
	reviews *live[use, authorizationv1.SubjectAccessReviewStatus]
	now     func() time.Time

	mu      sync.Mutex
	allowed map[use]time.Time // until when
}

func newUses(authorizer Authorizer, now func() time.Time) *uses {
	s := &uses{now: now, allowed: map[use]time.Time{}}
	s.reviews = newLive(func(ctx context.Context, u use) (authorizationv1.SubjectAccessReviewStatus, error) {
		// Who waited for their turn are served by the review before them.
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

// may says whether it may, and what the authorizer said where it may not. An error is a review that could not be made.
func (s *uses) may(ctx context.Context, u use) (bool, string, error) {
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
