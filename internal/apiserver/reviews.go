package apiserver

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/authority"
)

const (
	// maxReviews and maxReviewKey bound the memory of answers, which a caller chooses a part of.
	maxReviews   = 8192
	maxReviewKey = 8 << 10
)

// KeepReviews takes the cache out of the options of an authorizer, and gives how long it keeps answers, for ReviewOnce.
func KeepReviews(o *options.DelegatingAuthorizationOptions) (uncached *options.DelegatingAuthorizationOptions, kept Kept) {
	without := *o
	without.AllowCacheTTL, without.DenyCacheTTL = 0, 0
	return &without, Kept{Allowed: o.AllowCacheTTL, Others: o.DenyCacheTTL}
}

// Kept is how long answers are kept.
type Kept struct{ Allowed, Others time.Duration }

// ReviewOnce returns an authorizer that keeps the answers of the next one, and calls it once at a time for the same user, verb and object:
// concurrent callers get the same answer. When a kept answer expires under load, the cluster is called once, and not
// by every waiting caller. The cache of the API machinery writes out the whole question as JSON for each request.
func ReviewOnce(next authorizer.Authorizer, kept Kept, clock clock.Clock) authorizer.Authorizer {
	return &reviewOnce{Authorizer: next, lifetimes: kept, kept: cache.NewLRUExpireCacheWithClock(maxReviews, clock)}
}

type reviewOnce struct {
	authorizer.Authorizer
	flights   singleflight.Group
	lifetimes Kept
	kept      *cache.LRUExpireCache
}

type review struct {
	decision authorizer.Decision
	reason   string
}

func (k Kept) of(decision authorizer.Decision) time.Duration {
	if decision == authorizer.DecisionAllow {
		return k.Allowed
	}
	return k.Others
}

// Authorize implements authorizer.UnconditionalAuthorizer. A caller that gives up stops waiting; the review goes on for the
// others.
func (r *reviewOnce) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	key, ok := keyOf(a)
	if !ok {
		return r.Authorizer.Authorize(ctx, a)
	}
	if kept, ok := r.kept.Get(key); ok {
		made := kept.(review)
		return made.decision, made.reason, nil
	}
	answer := r.flights.DoChan(key, func() (any, error) {
		decision, reason, err := r.Authorizer.Authorize(context.WithoutCancel(ctx), a)
		made := review{decision, reason}
		if err == nil && len(key) <= maxReviewKey {
			r.kept.Add(key, made, r.lifetimes.of(decision))
		}
		return made, err
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
