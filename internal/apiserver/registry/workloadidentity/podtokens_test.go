package workloadidentity

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/warning"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

type warned []string

func (w *warned) AddWarning(_, text string) { *w = append(*w, text) }

// Pods that get tokens of their own have no Secret that an agent reports: a user who deletes their identity is warned all the same, until the
// last of these tokens has expired.
func TestDeletionWarnsOfTokensOfPods(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(now)
	r := &REST{clock: clock, podTokens: newPodTokens(2)}
	warnings := func(uid types.UID) []string {
		t.Helper()
		var got warned
		wi := &v1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: uid}}
		testkit.Must(t, r.warning(nil)(warning.WithWarningRecorder(context.Background(), &got), wi))
		return got
	}
	r.IssuedToPod("one", now.Add(time.Hour))
	r.IssuedToPod("one", now.Add(10*time.Minute)) // a shorter one
	const want = "WorkloadIdentity shop/cart is in use: pods get its tokens without a Secret; they get no more, and the last of their tokens expires at 2026-03-01T13:00:00Z"
	if got := warnings("one"); !slices.Equal(got, []string{want}) {
		t.Errorf("with a token: %q", got)
	}
	if got := warnings("another"); got != nil {
		t.Errorf("an identity of another uid: %q", got)
	}
	clock.SetTime(now.Add(time.Hour))
	if got := warnings("one"); got != nil {
		t.Errorf("once its tokens have expired: %q", got)
	}
	clock.SetTime(now)
	for _, uid := range []types.UID{"two", "one", "three"} {
		r.IssuedToPod(uid, now.Add(time.Hour))
	}
	if warnings("one") == nil || warnings("three") == nil || warnings("two") != nil {
		t.Error("of three identities those with the latest tokens are remembered")
	}
}
