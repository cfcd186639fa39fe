package profiles

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

func TestReport(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: "Tested", Status: status, Reason: reason, Message: message}
	}
	for name, c := range map[string]struct {
		before, after *metav1.Condition
		want          string // empty: none
	}{
		"good from the beginning": {nil, is(metav1.ConditionTrue, "Good", "all is well"), ""},
		"bad from the beginning":  {nil, is(metav1.ConditionFalse, "Bad", "it is not"), "Warning Bad it is not"},
		"another message":         {is(metav1.ConditionFalse, "Bad", "it is not"), is(metav1.ConditionFalse, "Bad", "nor is it now"), ""},
		"another reason":          {is(metav1.ConditionFalse, "Bad", "it is not"), is(metav1.ConditionFalse, "Worse", "at all"), "Warning Worse at all"},
		"good again":              {is(metav1.ConditionFalse, "Bad", "it is not"), is(metav1.ConditionTrue, "Good", "all is well"), "Normal Good all is well"},
	} {
		events := record.NewFakeRecorder(1)
		reported := Report(events, &accounts.ServiceAccountProfile{}, c.before, *c.after, c.after.Status == metav1.ConditionTrue)
		got := ""
		if len(events.Events) > 0 {
			got = <-events.Events
		}
		if got != c.want || reported != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got, reported, c.want)
		}
	}
}
