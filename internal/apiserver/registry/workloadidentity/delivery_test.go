package workloadidentity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// reported is a report; expires is after how many minutes.
func reported(secrets, delivered int32, expires int, reason string) v1alpha1.DeliveryReportSpec {
	report := v1alpha1.DeliveryReportSpec{Secrets: secrets, Delivered: delivered}
	if delivered > 0 {
		at := metav1.NewTime(start.Add(time.Duration(expires) * time.Minute))
		report.Expires = &at
	}
	if reason != "" {
		report.Failure = &v1alpha1.DeliveryFailure{Reason: reason, Message: "why"}
	}
	return report
}

func fresh() *v1alpha1.WorkloadIdentity {
	wi := valid()
	wi.CreationTimestamp = metav1.NewTime(start)
	strategy{}.PrepareForCreate(context.Background(), wi)
	return wi
}

// shown is what a reader sees, after so many minutes: the conditions with their reasons and ages, and the columns.
func shown(wi *v1alpha1.WorkloadIdentity, minutes int) string {
	now := start.Add(time.Duration(minutes) * time.Minute)
	read := wi.DeepCopy()
	settle(read, now)
	var parts []string
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionDelivered} {
		c := meta.FindStatusCondition(read.Status.Conditions, name)
		parts = append(parts, fmt.Sprintf("%s=%s %s %s", name, c.Status, c.Reason, c.LastTransitionTime.Sub(start)))
	}
	t := newTable(clocktesting.NewFakePassiveClock(now))
	rows, err := t.ConvertToTable(context.Background(), read, nil)
	if err != nil {
		return err.Error()
	}
	return strings.Join(append(parts, fmt.Sprint(rows.Rows[0].Cells[1:4])), ", ")
}

func TestConditions(t *testing.T) {
	type report struct {
		by   string
		at   int
		what v1alpha1.DeliveryReportSpec
	}
	for name, test := range map[string]struct {
		reports []report
		at      int
		want    string
	}{
		"new":                {nil, 5, "Ready=True Issuable 0s, Delivered=Unknown NotReported 0s, [True - -]"},
		"delivered":          {[]report{{"a", 1, reported(2, 2, 60, "")}}, 5, "Ready=True Issuable 0s, Delivered=True Delivered 1m0s, [True 2/2 55m]"},
		"two clusters":       {[]report{{"a", 1, reported(2, 2, 60, "")}, {"b", 2, reported(1, 1, 30, "")}}, 5, "Ready=True Issuable 0s, Delivered=True Delivered 1m0s, [True 3/3 25m]"},
		"one is missing":     {[]report{{"a", 1, reported(2, 1, 60, "")}}, 5, "Ready=False TokenMissing 1m0s, Delivered=False TokenMissing 1m0s, [False 1/2 55m]"},
		"one fails":          {[]report{{"a", 1, reported(2, 2, 60, "UseDenied")}}, 5, "Ready=False UseDenied 1m0s, Delivered=True Delivered 1m0s, [False 2/2 55m]"},
		"fails in one":       {[]report{{"a", 1, reported(2, 2, 60, "")}, {"b", 2, reported(1, 0, 0, "UseDenied")}}, 5, "Ready=False UseDenied 2m0s, Delivered=False TokenMissing 2m0s, [False 2/3 55m]"},
		"mended":             {[]report{{"a", 1, reported(1, 0, 0, "UseDenied")}, {"a", 3, reported(1, 1, 60, "")}}, 5, "Ready=True Issuable 3m0s, Delivered=True Delivered 3m0s, [True 1/1 55m]"},
		"agent stopped":      {[]report{{"a", 1, reported(1, 1, 60, "")}}, 70, "Ready=False TokenExpired 1h0m0s, Delivered=False TokenExpired 1h0m0s, [False 1/1 expired]"},
		"agent long gone":    {[]report{{"a", 1, reported(1, 1, 60, "")}}, 60 * 30, "Ready=True Issuable 0s, Delivered=Unknown NotReported 30h0m0s, [True - -]"},
		"no Secret any more": {[]report{{"a", 1, reported(1, 1, 60, "")}, {"a", 4, reported(0, 0, 0, "")}}, 5, "Ready=True Issuable 0s, Delivered=Unknown NotReported 4m0s, [True - -]"},
	} {
		wi := fresh()
		for _, r := range test.reports {
			if err := record(wi, r.by, r.what, start.Add(time.Duration(r.at)*time.Minute)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if diff := cmp.Diff(test.want, shown(wi, test.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	deleted := fresh()
	now := metav1.NewTime(start.Add(time.Minute))
	deleted.DeletionTimestamp = &now
	if got := shown(deleted, 2); !strings.HasPrefix(got, "Ready=False Deleting ") {
		t.Errorf("being deleted: %s", got)
	}
}

// A reader's conditions must not change what a cache holds.
func TestSettleSharesNothing(t *testing.T) {
	cached := fresh()
	testkit.Must(t, record(cached, "a", reported(1, 1, 60, ""), start))
	before := cached.DeepCopy()
	read := *cached
	settle(&read, start.Add(2*time.Hour))
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("the cached object has changed:\n%s", diff)
	}
}

func TestHowOftenAndHowManyReport(t *testing.T) {
	wi := fresh()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	testkit.Must(t, record(wi, "a", reported(1, 1, 60, ""), at(0)))
	before := wi.DeepCopy()
	if err := record(wi, "a", reported(1, 1, 60, ""), at(30)); err != nil || cmp.Diff(before, wi) != "" {
		t.Errorf("the same again: %v, %s", err, cmp.Diff(before, wi))
	}
	err := record(wi, "a", reported(2, 1, 60, ""), at(30))
	if after, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !ok || after != 30 || cmp.Diff(before, wi) != "" {
		t.Errorf("another within a minute: %v, after %d", err, after)
	}
	testkit.Expect(t, record(wi, "a", reported(2, 1, 60, ""), at(60)), "after a minute")
	for i := range maxReporters - 1 {
		testkit.Must(t, record(wi, fmt.Sprintf("b%d", i), reported(1, 1, 90, ""), at(60)))
	}
	if err := record(wi, "late", reported(1, 1, 60, ""), at(60)); !apierrors.IsConflict(err) || len(wi.Status.Deliveries) != maxReporters {
		t.Errorf("one too many: %v", err)
	}
	if err := record(wi, "late", reported(1, 1, 6000, ""), at(60*61+24*3600)); err != nil || len(wi.Status.Deliveries) != maxReporters || wi.Status.Deliveries[0].Reporter != "late" {
		t.Errorf("in the place of one that is gone: %v", err)
	}

	// The time of a reporter counts as well where it has no Secret any more, and no longer than it must.
	wi = fresh()
	for i, step := range []struct {
		by               string
		at               int
		secrets          int32
		refused, entries int
	}{
		{"a", 0, 0, 0, 0}, // it has no entry
		{"a", 0, 1, 0, 1},
		{"b", 30, 1, 0, 2},
		{"a", 59, 0, 1, 2},
		{"a", 60, 0, 0, 2},
		{"a", 61, 1, 59, 2},
		{"a", 61, 0, 0, 2}, // the same again
		{"b", 90, 2, 0, 2},
		{"a", 120, 1, 0, 2},
		{"a", 180, 0, 0, 2},
		{"b", 240, 3, 0, 1},
		{"a", 240, 1, 0, 2},
	} {
		err := record(wi, step.by, reported(step.secrets, 0, 0, "UseDenied"), at(step.at))
		after, _ := apierrors.SuggestsClientDelay(err)
		if after != step.refused || (err == nil) != (step.refused == 0) || len(wi.Status.Deliveries) != step.entries {
			t.Errorf("step %d, %+v: %v, %d entries", i, step, err, len(wi.Status.Deliveries))
		}
	}
	testkit.Must(t, record(wi, "a", reported(0, 0, 0, ""), at(300)))
	for seconds, want := range map[int]int{300: 2, 359: 2, 360: 1} {
		read := *wi
		settle(&read, at(seconds))
		if len(read.Status.Deliveries) != want {
			t.Errorf("read after %d s: %d entries, want %d", seconds, len(read.Status.Deliveries), want)
		}
	}
}

func TestReportsAreValidated(t *testing.T) {
	longest := 72 * time.Hour
	// latest is when a token expires that is issued now, in minutes, by a clock that is as wrong as it may be.
	latest := int((longest + keys.DefaultClockSkew).Minutes())
	for name, report := range map[string]v1alpha1.DeliveryReportSpec{
		"negative":              {Secrets: 1, Delivered: -1},
		"too many":              {Secrets: maxSecrets + 1},
		"more than all":         reported(1, 2, 60, ""),
		"no expiry":             {Secrets: 1, Delivered: 1},
		"expiry without tokens": {Secrets: 1, Expires: reported(1, 1, 1, "").Expires},
		"older than no token":   {Secrets: 1, Oldest: reported(1, 1, 1, "").Expires},
		"issued after expiry":   {Secrets: 1, Delivered: 1, Expires: reported(1, 1, 1, "").Expires, Oldest: reported(1, 1, 2, "").Expires},
		"longer than any token": reported(1, 1, latest+1, ""),
		"for ever":              {Secrets: 1, Delivered: 1, Expires: &metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}},
		"in no year":            {Secrets: 1, Delivered: 1, Expires: &metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -14*60*60))}},
		"issued in the future":  {Secrets: 1, Delivered: 1, Expires: reported(1, 1, latest, "").Expires, Oldest: reported(1, 1, int(keys.DefaultClockSkew.Minutes())+1, "").Expires},
		"empty reason":          {Secrets: 1, Failure: &v1alpha1.DeliveryFailure{}},
		"reason in words":       {Secrets: 1, Failure: &v1alpha1.DeliveryFailure{Reason: "Use denied"}},
		"long reason":           {Secrets: 1, Failure: &v1alpha1.DeliveryFailure{Reason: strings.Repeat("A", 65)}},
		"long message":          {Secrets: 1, Failure: &v1alpha1.DeliveryFailure{Reason: "A", Message: strings.Repeat("é", maxMessage+1)}},
		"more elsewhere":        {Secrets: 1, Elsewhere: 2},
		"fewer than none":       {Secrets: 1, Elsewhere: -1},
		"many names":            {Secrets: 9, Elsewhere: 9, Names: []string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}},
		"no name":               {Secrets: 1, Elsewhere: 1, Names: []string{"a/b\n"}},
		"bytes":                 {Secrets: 1, Failure: &v1alpha1.DeliveryFailure{Reason: "A", Message: "\xff"}},
	} {
		if errs := validateReport(report, longest, start); len(errs) != 1 {
			t.Errorf("%s: %v, want one error", name, errs)
		}
	}
	right := reported(2, 1, latest, "UseDenied")
	right.Oldest = reported(1, 1, int(keys.DefaultClockSkew.Minutes()), "").Expires
	for _, report := range []v1alpha1.DeliveryReportSpec{reported(2, 1, 60, "UseDenied"), reported(1, 1, -60, ""), right, {Secrets: 2, Elsewhere: 1, Names: []string{"other/s.1"}}} {
		if errs := validateReport(report, longest, start); len(errs) > 0 {
			t.Errorf("one that is right: %v", errs)
		}
	}
	// Tokens from before the longest lifetime was lowered.
	if errs := validateReport(reported(1, 1, int(keys.DefaultMaxLifetime.Minutes()), ""), time.Hour, start); len(errs) > 0 {
		t.Errorf("one of an older token: %v", errs)
	}
}

// Whatever the endpoint makes of an object, nothing but conditions and deliveries is stored.
// A report's text becomes part of a condition: it changes no terminal that shows the condition, and is the same for the next report.
func TestControlCharactersOfReports(t *testing.T) {
	wi, report := fresh(), reported(1, 0, 0, "UseDenied")
	report.Failure.Message = "\x1b[2Jgone\r\n\u202e" + strings.Repeat("\x1b", maxMessage)
	for range 2 {
		testkit.Must(t, record(wi, "a", report, start))
	}
	for _, c := range wi.Status.Conditions {
		if strings.ContainsFunc(c.Message, func(r rune) bool { return !unicode.IsPrint(r) }) || len(c.Message) > 2*maxMessage {
			t.Errorf("%s: %q", c.Type, c.Message)
		}
	}
	if got := wi.Status.Deliveries[0].Failure.Message; !strings.HasPrefix(got, `\u001b[2Jgone\u000d\n\u202e`) {
		t.Errorf("stored is %q", got)
	}
}

func TestReportsChangeNothingElse(t *testing.T) {
	old := fresh()
	changed := old.DeepCopy()
	changed.Labels, changed.Spec.Audiences, changed.Status.Sub, changed.Status.Issuer = map[string]string{"a": "b"}, []string{"x"}, "s", "i"
	changed.Status.Deliveries = []v1alpha1.Delivery{{Reporter: "a"}}
	marksStrategy{}.PrepareForUpdate(t.Context(), changed, old)
	want := old.DeepCopy()
	want.Status.Deliveries = changed.Status.Deliveries
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	// And others do not change them.
	plain := old.DeepCopy()
	plain.Status.Deliveries, plain.Status.Conditions = []v1alpha1.Delivery{{Reporter: "mallory"}}, nil
	strategy{}.PrepareForUpdate(t.Context(), plain, want)
	if diff := cmp.Diff(want.Status, plain.Status); diff != "" {
		t.Errorf("the status after a change of the object (-want +got):\n%s", diff)
	}
}
