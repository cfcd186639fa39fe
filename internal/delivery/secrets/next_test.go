package secrets

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/renewal"
	"github.com/credence-id/credence/internal/tokensecret"
)

var start0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// Each row adds one fact to those before it, after which comes a step. The rows of the table `instead` take the place of one of them.
func TestNext(t *testing.T) {
	broken := errors.New("broken")
	notFound := apierrors.NewNotFound(v1alpha1.Resource("workloadidentities"), "banana")
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("workloadidentities"), "banana", broken)
	type change = func(*state)
	due := func(digest string) plan {
		return plan{want: renewal.Want{Digest: digest, Revoked: func(string) bool { return false }}, decision: renewal.Decision{Reason: renewal.Reasons()[0]}}
	}
	way := []struct {
		fact change
		step step
	}{
		{func(*state) {}, readIdentity},
		{func(s *state) { s.identity = found(&v1alpha1.WorkloadIdentity{}, nil) }, checkOwner},
		{func(s *state) { s.foreign = found("", nil) }, makePlan},
		{func(s *state) { s.plan = found(due("d"), nil) }, takeTurn},
		{func(s *state) { s.turn = found(true, nil) }, checkUse},
		{func(s *state) { s.denied = found("", nil) }, requestToken},
		{func(s *state) { s.minted = found(&minted{renewAt: start0.Add(time.Hour)}, nil) }, writeToken},
		{func(s *state) { s.written = found("1", nil) }, renewed},
	}
	after := func(rows int) *state {
		s := &state{
			secret: &corev1.Secret{}, request: tokensecret.Request{Identity: types.NamespacedName{Namespace: "ns", Name: "banana"}},
			local: start0, now: start0, random: func() float64 { return 0.5 },
		}
		for _, row := range way[:rows] {
			row.fact(s)
		}
		return s
	}
	for i, row := range way {
		if got := next(after(i + 1)); got.step != row.step || got.failure != (failures.Failure{}) {
			t.Errorf("after row %d: %+v, want step %d", i, got, row.step)
		}
	}
	if got := next(after(len(way))); got.after != time.Hour {
		t.Errorf("a new token: looked at again after %s", got.after)
	}
	remembered := &minted{digest: "d", renewAt: start0.Add(time.Hour)}
	for name, instead := range map[string]struct {
		rows  int
		fact  change
		step  step
		cause failures.Cause
	}{
		"invalid request":     {0, func(s *state) { s.invalid = broken }, stand, failures.AnnotationInvalid},
		"no identity":         {1, func(s *state) { s.identity = found[*v1alpha1.WorkloadIdentity](nil, notFound) }, orphan, failures.IdentityMissing},
		"identity goes":       {2, func(s *state) { s.identity.value.DeletionTimestamp = &metav1.Time{} }, orphan, failures.IdentityMissing},
		"identity forbidden":  {1, func(s *state) { s.identity = found[*v1alpha1.WorkloadIdentity](nil, forbidden) }, retry, failures.AgentForbidden},
		"identity unanswered": {1, func(s *state) { s.identity = found[*v1alpha1.WorkloadIdentity](nil, broken) }, unanswered, failures.Unreachable},
		"identity unanswered, nothing due": {1, func(s *state) {
			s.identity = found[*v1alpha1.WorkloadIdentity](nil, broken)
			s.secret.Annotations = map[string]string{v1alpha1.AnnotationRenewTimestamp: start0.Add(time.Second).Format(time.RFC3339)}
			s.token = &renewal.Token{Expiry: start0.Add(time.Minute)}
		}, unanswered, ""},
		"identity unanswered, a new one wanted": {1, func(s *state) {
			s.identity, s.requested = found[*v1alpha1.WorkloadIdentity](nil, broken), true
			s.secret.Annotations = map[string]string{v1alpha1.AnnotationRenewTimestamp: start0.Add(time.Second).Format(time.RFC3339)}
			s.token = &renewal.Token{Expiry: start0.Add(time.Minute)}
		}, unanswered, failures.Unreachable},
		"owner unknown": {2, func(s *state) { s.foreign = found("", broken) }, retry, failures.ReviewFailed},
		"of another":    {2, func(s *state) { s.foreign = found("its owner", nil) }, retry, failures.NotOwn},
		"no plan":       {3, func(s *state) { s.plan = found(plan{}, broken) }, stand, failures.Refused},
		"not due":       {3, func(s *state) { s.plan = found(plan{}, nil) }, settled, ""},
		"immutable":     {4, func(s *state) { s.secret.Immutable = new(true) }, stand, failures.WriteFailed},
		"failed a moment ago": {4, func(s *state) {
			s.memory = Entry{Record: failures.Record{Failures: 1, Digest: s.attempt(), RetryAt: start0.Add(time.Minute)}}
		}, wait, ""},
		"failed with others": {4, func(s *state) {
			s.memory = Entry{Record: failures.Record{Failures: 1, Digest: "other", RetryAt: start0.Add(time.Minute)}}
		}, takeTurn, ""},
		"written too often":       {4, func(s *state) { s.memory.tokens = renewal.Pace{Last: start0, Quick: 3} }, wait, ""},
		"others first":            {4, func(s *state) { s.turn = found(false, nil) }, awaitTurn, ""},
		"use unknown":             {5, func(s *state) { s.denied = found("", broken) }, retry, failures.ReviewFailed},
		"use denied":              {5, func(s *state) { s.denied = found("may not", nil) }, retry, failures.UseDenied},
		"token of before":         {6, func(s *state) { s.memory.minted = remembered }, reuseToken, ""},
		"… for other inputs":      {6, func(s *state) { s.memory.minted, s.plan = remembered, found(due("e"), nil) }, requestToken, ""},
		"… a new one wanted":      {6, func(s *state) { s.memory.minted, s.requested = remembered, true }, requestToken, ""},
		"… too old":               {6, func(s *state) { s.memory.minted, s.now = remembered, start0.Add(time.Hour) }, requestToken, ""},
		"token unusable":          {6, func(s *state) { s.minted = found[*minted](nil, unusable{broken}) }, retry, failures.TokenUnusable},
		"token forbidden":         {6, func(s *state) { s.minted = found[*minted](nil, forbidden) }, retry, failures.AgentForbidden},
		"token unauthorized":      {6, func(s *state) { s.minted = found[*minted](nil, apierrors.NewUnauthorized("no")) }, retry, failures.AgentUnauthorized},
		"identity gone meanwhile": {6, func(s *state) { s.minted = found[*minted](nil, notFound) }, orphan, failures.IdentityMissing},
		"too many requests": {6, func(s *state) {
			s.minted = found[*minted](nil, apierrors.NewTooManyRequests("refused by a webhook", 1))
		}, throttled, failures.Throttled},
		"no answer":              {6, func(s *state) { s.minted = found[*minted](nil, broken) }, tryReads, ""},
		"no answer, reads known": {6, func(s *state) { s.minted, s.reads = found[*minted](nil, broken), found(true, nil) }, unanswered, failures.Unreachable},
		"not written":            {7, func(s *state) { s.written = found("", broken) }, retry, failures.WriteFailed},
	} {
		s := after(instead.rows)
		instead.fact(s)
		if got := next(s); got.step != instead.step || got.failure.Cause != instead.cause || (got.step >= unanswered && got.step != renewed && instead.cause != "") != (got.failure.Message != "") {
			t.Errorf("%s: %+v, want step %d, cause %q", name, got, instead.step, instead.cause)
		}
	}
}
