package apiserver

import (
	"context"

	"golang.org/x/sync/singleflight"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/credence-id/credence/internal/authority"
)

// ReviewOnce returns an authorizer that calls the next one once at a time for the same user, verb and object: concurrent
// callers get the same answer. When a kept answer expires under load, the cluster is called once, and not
// by every waiting caller.
func ReviewOnce(next authorizer.Authorizer) authorizer.Authorizer {
	return &reviewOnce{Authorizer: next}
}

type reviewOnce struct {
	authorizer.Authorizer
	flights singleflight.Group
}

type review struct {
	decision authorizer.Decision
	reason   string
}

// Authorize implements authorizer.UnconditionalAuthorizer. A caller that gives up stops waiting; the review goes on for the
// others.
func (r *reviewOnce) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key, ok := keyOf(a)
	if !ok {
		return r.Authorizer.Authorize(ctx, a)
	}
	answer := r.flights.DoChan(key, func() (any, error) {
		decision, reason, err := r.Authorizer.Authorize(context.WithoutCancel(ctx), a)
		return review{decision, reason}, err
	})
	select {
	case <-ctx.Done():
		return authorizer.DecisionDeny, "", context.Cause(ctx)
	case got := <-answer:
		made := got.Val.(review)
		return made.decision, made.reason, got.Err
	}
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; decisions of the cluster have no conditions.
func (r *reviewOnce) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

// keyOf is all that a decision depends on; false for requests with selectors, which are few.
func keyOf(a authorizer.Attributes) (string, bool) {
	who := a.GetUser()
	if who == nil {
		return "", false
	}
	if labels, err := a.GetLabelSelector(); err != nil || len(labels) > 0 {
		return "", false
	}
	if fields, err := a.GetFieldSelector(); err != nil || len(fields) > 0 {
		return "", false
	}
	kind := "path"
	if a.IsResourceRequest() {
		kind = "resource"
	}
	key := authority.AppendTexts(make([]byte, 0, 512),
		kind, a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.GetPath())
	subject := authority.Subject{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: who.GetExtra()}
	return string(subject.AppendKey(key)), true
}
