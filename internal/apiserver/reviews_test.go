package apiserver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// slowReviews answers when it is let, and counts.
type slowReviews struct {
	authorizer.Authorizer
	calls  atomic.Int64
	arrive chan context.Context
	answer chan error
}

func (r *slowReviews) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.calls.Add(1)
	r.arrive <- ctx
	err := <-r.answer
	return authorizer.DecisionAllow, "because of " + a.GetUser().GetName(), err
}

func attributes(change func(*authorizer.AttributesRecord)) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "jane", Groups: []string{"a", "b"}, Extra: map[string][]string{"scope": {"x"}}},
		Verb: "create", Namespace: "ns", APIGroup: "g", APIVersion: "v1", Resource: "r", Subresource: "token", Name: "n", ResourceRequest: true,
	}
	change(&a)
	return a
}

func TestReviewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 20
		next := &slowReviews{arrive: make(chan context.Context, 1), answer: make(chan error)}
		once := ReviewOnce(next, Kept{}, clock.RealClock{})
		var allowed atomic.Int64
		ask := func(ctx context.Context, a authorizer.Attributes) error {
			decision, reason, err := once.Authorize(ctx, a)
			if decision == authorizer.DecisionAllow && reason == "because of jane" && err == nil {
				allowed.Add(1)
			}
			return err
		}
		first, giveUp := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			if err := ask(first, attributes(func(*authorizer.AttributesRecord) {})); !errors.Is(err, context.Canceled) {
				t.Errorf("a canceled caller got %v", err)
			}
		})
		asking := <-next.arrive
		for range callers {
			done.Go(func() { _ = ask(t.Context(), attributes(func(*authorizer.AttributesRecord) {})) })
		}
		synctest.Wait()
		giveUp()
		synctest.Wait()
		if asking.Err() != nil {
			t.Error("a canceled caller has ended the review of all")
		}
		if calls := next.calls.Load(); calls != 1 {
			t.Errorf("the cluster was called %d times for %d callers at once", calls, callers)
		}
		next.answer <- nil
		done.Wait()
		if allowed.Load() != callers {
			t.Errorf("%d of %d callers were answered", allowed.Load(), callers)
		}
		// All callers get an outage, and the next one calls anew. Nothing is kept here; the clock moves on for that.
		time.Sleep(time.Nanosecond)
		outage := errors.New("no route to host")
		done.Go(func() {
			if err := ask(t.Context(), attributes(func(*authorizer.AttributesRecord) {})); !errors.Is(err, outage) {
				t.Errorf("after an outage: %v", err)
			}
		})
		<-next.arrive
		next.answer <- outage
		done.Wait()
		if calls := next.calls.Load(); calls != 2 {
			t.Errorf("called %d times, want 2", calls)
		}
	})
}

// answers gives one decision to each question, and counts.
type answers struct {
	authorizer.Authorizer
	calls    int
	decision authorizer.Decision
	err      error
}

func (a *answers) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	a.calls++
	return a.decision, "because", a.err
}

func TestReviewsAreKept(t *testing.T) {
	o := options.NewDelegatingAuthorizationOptions()
	if longest := max(o.AllowCacheTTL, o.DenyCacheTTL); longest != 10*time.Second { // docs/reference/agents.md
		t.Errorf("answers are kept for %s without flags", longest)
	}
	o.AllowCacheTTL, o.DenyCacheTTL = 10*time.Second, 5*time.Second
	without, kept := KeepReviews(o)
	if without.AllowCacheTTL != 0 || without.DenyCacheTTL != 0 || o.AllowCacheTTL == 0 {
		t.Errorf("the authorizer keeps answers for %s and %s, too; the options for %s", without.AllowCacheTTL, without.DenyCacheTTL, o.AllowCacheTTL)
	}
	long := strings.Repeat("x", maxReviewKey)
	for name, test := range map[string]struct {
		decision authorizer.Decision
		err      error
		name     string
		lasts    time.Duration
	}{
		"allowed":    {decision: authorizer.DecisionAllow, lasts: 10 * time.Second},
		"denied":     {decision: authorizer.DecisionDeny, lasts: 5 * time.Second},
		"no opinion": {decision: authorizer.DecisionNoOpinion, lasts: 5 * time.Second},
		"failed":     {decision: authorizer.DecisionDeny, err: errors.New("no route to host")},
		"too long":   {decision: authorizer.DecisionAllow, name: long},
	} {
		t.Run(name, func(t *testing.T) {
			now, next := testingclock.NewFakeClock(time.Unix(0, 0)), &answers{decision: test.decision, err: test.err}
			once := ReviewOnce(next, kept, now)
			question := attributes(func(a *authorizer.AttributesRecord) { a.Name += test.name })
			asked := func(want int) {
				t.Helper()
				decision, reason, err := once.Authorize(t.Context(), question)
				if decision != test.decision || reason != "because" || !errors.Is(err, test.err) {
					t.Fatalf("answered %v, %q, %v", decision, reason, err)
				}
				if next.calls != want {
					t.Fatalf("the cluster was called %d times, want %d", next.calls, want)
				}
			}
			asked(1)
			if test.lasts == 0 {
				asked(2)
				return
			}
			now.Step(test.lasts)
			asked(1)
			now.Step(time.Nanosecond)
			asked(2)
		})
	}
}

// Whatever a decision depends on is part of the key.
func TestReviewsAreNotMixedUp(t *testing.T) {
	keys := map[string]string{}
	info := func(change func(*user.DefaultInfo)) func(*authorizer.AttributesRecord) {
		return func(a *authorizer.AttributesRecord) {
			copied := *a.User.(*user.DefaultInfo)
			change(&copied)
			a.User = &copied
		}
	}
	for name, change := range map[string]func(*authorizer.AttributesRecord){
		"same":        func(*authorizer.AttributesRecord) {},
		"verb":        func(a *authorizer.AttributesRecord) { a.Verb = "use" },
		"namespace":   func(a *authorizer.AttributesRecord) { a.Namespace = "other" },
		"group":       func(a *authorizer.AttributesRecord) { a.APIGroup = "other" },
		"version":     func(a *authorizer.AttributesRecord) { a.APIVersion = "v2" },
		"resource":    func(a *authorizer.AttributesRecord) { a.Resource = "other" },
		"subresource": func(a *authorizer.AttributesRecord) { a.Subresource = "" },
		"name":        func(a *authorizer.AttributesRecord) { a.Name = "other" },
		"path":        func(a *authorizer.AttributesRecord) { a.Path = "/x" },
		"not object":  func(a *authorizer.AttributesRecord) { a.ResourceRequest = false },
		"shifted":     func(a *authorizer.AttributesRecord) { a.Subresource, a.Name = "toke", "nn" },
		"user":        info(func(u *user.DefaultInfo) { u.Name = "joe" }),
		"uid":         info(func(u *user.DefaultInfo) { u.UID = "1" }),
		"groups":      info(func(u *user.DefaultInfo) { u.Groups = []string{"a"} }),
		"joined":      info(func(u *user.DefaultInfo) { u.Groups = []string{"ab"} }),
		"extra":       info(func(u *user.DefaultInfo) { u.Extra = map[string][]string{"scope": {"y"}} }),
		"no extra":    info(func(u *user.DefaultInfo) { u.Extra = nil }),
		"moved":       info(func(u *user.DefaultInfo) { u.Groups, u.Extra = []string{"a", "b", "scope", "x"}, nil }),
	} {
		key, ok := keyOf(attributes(change))
		if !ok {
			t.Errorf("%s: no key", name)
		}
		if other, same := keys[key]; same {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[key] = name
	}
	if _, ok := keyOf(attributes(func(a *authorizer.AttributesRecord) {
		a.FieldSelectorRequirements = fields.Requirements{{Operator: selection.Equals, Field: "metadata.name", Value: "n"}}
	})); ok {
		t.Error("a request with a selector shares the answer of one without")
	}
	if _, ok := keyOf(attributes(func(a *authorizer.AttributesRecord) { a.User = nil })); ok {
		t.Error("a request without a user has a key")
	}
}
