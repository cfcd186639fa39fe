package failures

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// Failures wait longer each time, up to a bound, and other inputs begin anew.
func TestFailedBacksOffForTheSameInputs(t *testing.T) {
	middle := func() float64 { return 0.5 }
	var r Record
	first, second := r.Failed("a", start, 0, middle), r.Failed("a", start, 0, middle)
	if second <= first || r.Wait("a", start) != second || r.Wait("b", start) != 0 || r.Wait("a", start.Add(second)) != 0 {
		t.Errorf("waits %s, then %s; %s are left", first, second, r.Wait("a", start))
	}
	for range 20 {
		if wait := r.Failed("a", start, time.Minute, middle); wait > time.Minute {
			t.Errorf("waits %s, want a minute at most", wait)
		}
	}
	if wait := r.Failed("b", start, 0, middle); wait != first || r.Failures != 1 {
		t.Errorf("with other inputs it waits %s after %d failures, want %s after one", wait, r.Failures, first)
	}
}

func TestReportOnceAndAgain(t *testing.T) {
	var r Record
	for _, step := range []struct {
		after   time.Duration
		message string
		want    bool
	}{{0, "a", true}, {Again - 1, "a", false}, {Again, "a", true}, {Again + 1, "b", true}, {Again + 2, "a", true}, {Again + 3, "a", false}} {
		if got := r.Report(Failure{Message: step.message}, start.Add(step.after)); got != step.want {
			t.Errorf("%q after %s is reported: %t", step.message, step.after, got)
		}
	}
}

func TestLedger(t *testing.T) {
	var l Ledger[Record]
	key := types.NamespacedName{Namespace: "ns", Name: "s"}
	l.Change(key, func(r *Record) { r.Failures++ })
	if got := l.Change(key, func(r *Record) { r.Failures++ }); got.Failures != 2 || l.Get(key) != got {
		t.Errorf("remembered %+v, returned %+v", l.Get(key), got)
	}
	l.Forget(key)
	l.Each(func(r Record) { t.Errorf("%+v is still remembered", r) })
}
