package authority

import (
	"context"
	"fmt"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestMemoryIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	l := NewLive(all{}, func() time.Time { return now })
	for i := range maxAllowed + 10 {
		if i == maxAllowed {
			now = now.Add(kept)
		}
		if answer, err := l.Ask(t.Context(), Use(ServiceAccount("ns", "account", ""), WorkloadIdentities, "ns", fmt.Sprint(i))); !answer.Allowed || err != nil {
			t.Fatal(answer, err)
		}
	}
	if len(l.allowed) != 10 {
		t.Errorf("%d rights are remembered, want the 10 that are not over", len(l.allowed))
	}
	for i := range 2 * maxAllowed {
		if _, err := l.Ask(t.Context(), Use(ServiceAccount("ns", "other", ""), WorkloadIdentities, "ns", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.allowed) > maxAllowed {
		t.Errorf("%d rights are remembered", len(l.allowed))
	}
}

// all allows everything.
type all struct{}

func (all) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
}
