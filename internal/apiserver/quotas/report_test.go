package quotas

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/test/testkit"
)

// A Quota has what its ledgers have: what is stored, what was reserved, and whether that is known and allowed. It is written once for each change,
// whichever replica reports it.
func TestReport(t *testing.T) {
	w, options := newWorld(t), storageOf(t)
	w.limit("all", "Secret", map[string]string{"cpu": "10", "memory": "100Gi"})
	w.limit("each", "Project", map[string]string{"cpu": "6"})
	w.limit("unused", "Secret", map[string]string{"cpu": "1"})
	w.bind("garden-a", "b", "all", "each")
	w.bind("garden-b", "b", "all", "each")
	r, other := w.replica(t, options), w.replica(t, options)
	// report has the replicas report, and compares a Quota.
	report := func(what, name, want string, writes int) {
		t.Helper()
		before := w.reports
		for _, each := range []*replica{r, other, r} {
			each.look()
			testkit.Must(t, each.sweep(t.Context()))
		}
		if diff := cmp.Diff(want, textOf(w.quotas["quotas/"+name].Status)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		if got := w.reports - before; got != writes {
			t.Errorf("%s: %d writes, want %d", what, got, writes)
		}
	}
	report("at first", "unused", "0 objects, cpu 0; Ready=True Exceeded=False", 3)
	one := shoot("garden-a", "one", "b", "4")
	r.write(t, "one", one)
	r.write(t, "two", shoot("garden-b", "two", "b", "1500m"))
	report("of all", "all", "2 objects, cpu 5500m, memory 2Gi; Ready=True Exceeded=False", 2)
	report("of a project", "each", "2 objects, cpu 4; Ready=True Exceeded=False", 0)

	// A write that was let through, and is not stored.
	if refused, err := other.Admit(t.Context(), other.asked("grown", with(one, "cpu", "6"))); refused != "" || err != nil {
		t.Fatal(refused, err)
	}
	report("reserved", "all", "2 objects, cpu 5500m and 2 reserved, memory 2Gi; Ready=True Exceeded=False", 2)
	w.clock.SetTime(noon.Add(reserved))
	report("released", "all", "2 objects, cpu 5500m, memory 2Gi; Ready=True Exceeded=False", 2)

	w.quotas["quotas/all"].Spec.Metrics["cpu"] = resource.MustParse("5")
	w.quotas["quotas/all"].Generation = 2
	report("lowered", "all", "2 objects, cpu 5500m, memory 2Gi; Ready=True Exceeded=True cpu: 5500m of 5", 1)
	if condition := meta.FindStatusCondition(w.quotas["quotas/all"].Status.Conditions, v1alpha1.ConditionReady); condition.ObservedGeneration != 2 || !condition.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("a condition that has not changed: %+v", condition)
	}
	w.shoots["garden-a/one"] = with(w.shoots["garden-a/one"], "cpu", "much")
	report("unknown", "all", "2 objects, cpu unknown, memory unknown; Ready=False cpu of 1, memory of 1 objects Exceeded=False", 2)
	w.remove("garden-a/one")
	w.remove("garden-b/two")
	report("nothing", "all", "0 objects, cpu 0, memory 0; Ready=True Exceeded=False", 2)
}

// textOf is a status in one line.
func textOf(status v1alpha1.QuotaStatus) string {
	text := fmt.Sprintf("%d objects", status.Objects)
	for _, name := range []string{"cpu", "memory"} {
		used, known := status.Used[name]
		switch {
		case known:
			text += ", " + name + " " + used.String()
		case len(status.Used) == 0:
			text += ", " + name + " unknown"
		}
		if more, ok := status.Reserved[name]; ok {
			text += " and " + more.String() + " reserved"
		}
	}
	text += ";"
	for _, each := range status.Conditions {
		text += fmt.Sprintf(" %s=%s", each.Type, each.Status)
		if each.Type == v1alpha1.ConditionReady != (each.Status == metav1.ConditionTrue) {
			text += each.Message[strings.LastIndex(each.Message, " use more: ")+len(" use more:"):]
		}
	}
	return text
}
