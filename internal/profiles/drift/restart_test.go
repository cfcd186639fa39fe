package drift

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// deployment is a workload of three pods, all new and available, of which those have drifted.
func deployment(name string, drifted ...pod) *rollout {
	r := &rollout{kind: "Deployment", name: name, uid: types.UID(name), observed: true, desired: 3, total: 3, updated: 3, ready: 3, available: 3}
	for i := range drifted {
		drifted[i].labels = map[string]string{"app": name}
		r.add(&drifted[i])
	}
	return r
}

func (r *rollout) with(change func(*rollout)) *rollout { change(r); return r }

// halfway is in the middle of a restart.
func halfway(r *rollout) { r.updated, r.total, r.ready, r.available = 1, 4, 3, 3 }

const before = "2026-07-01T11:00:00Z"

func lastOf(name string, begun bool, wants ...string) *accounts.ProfileRestart {
	return &accounts.ProfileRestart{Kind: "Deployment", Name: name, UID: types.UID(name), At: before, Begun: begun, Wants: wants}
}

func none(name string, selector map[string]string) budget {
	return budget{name: name, selector: labels.SelectorFromSet(selector)}
}

func TestRestart(t *testing.T) {
	one := drifted("a", "w", true)
	other := one
	other.Wants = "other"
	const want = "f w"
	for name, test := range map[string]struct {
		memory  memory
		last    *accounts.ProfileRestart
		found   []*rollout
		alone   int
		budgets []budget
		begins  string
		at      string // of the record
		reason  string
		says    string
	}{
		"one":                         {found: []*rollout{deployment("b", one), deployment("a", one)}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts, says: "Deployment a is restarted"},
		"another one is under way":    {last: lastOf("a", true, want), found: []*rollout{deployment("a", one).with(halfway), deployment("b", one)}, at: before, reason: ReasonRestarts},
		"under way without old pods":  {last: lastOf("a", true, want), found: []*rollout{deployment("a").with(halfway), deployment("b", one)}, at: before, reason: ReasonRestarts},
		"its old pods remain":         {last: lastOf("a", true, want), found: []*rollout{deployment("a").with(func(r *rollout) { r.total = 4 }), deployment("b", one)}, at: before, reason: ReasonRestarts},
		"for long":                    {memory: memory{progress: "Deployment a has 1 of 3 pods new, and 3 available", waiting: begin.Add(-5 * time.Minute)}, last: lastOf("a", true, want), found: []*rollout{deployment("a", one).with(halfway)}, at: before, reason: ReasonNoRestarts, says: "Deployment a has 1 of 3 pods new, and 3 available"},
		"for long, with progress":     {memory: memory{progress: "Deployment a has 0 of 3 pods new, and 3 available", waiting: begin.Add(-5 * time.Minute)}, last: lastOf("a", true, want), found: []*rollout{deployment("a", one).with(halfway)}, at: before, reason: ReasonRestarts},
		"the next one":                {last: lastOf("a", true, want), found: []*rollout{deployment("a"), deployment("b", one)}, begins: "b", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"all have ended":              {last: lastOf("a", true, want), found: []*rollout{deployment("a")}, reason: ReasonOutOfSpec},
		"the last one is gone":        {last: lastOf("a", true, want), found: []*rollout{deployment("b", one)}, begins: "b", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"ended, with pods read early": {last: lastOf("a", true, want), found: []*rollout{deployment("a", one), deployment("b", one)}, at: before, reason: ReasonRestarts},
		"it did not help":             {memory: memory{rolled: true}, last: lastOf("a", true, want), found: []*rollout{deployment("a", one), deployment("b", one)}, at: before, reason: ReasonNoRestarts, says: "Deployment a was restarted, and its new pods differ still: stale f (none) → w"},
		"another change":              {last: lastOf("a", true, want), found: []*rollout{deployment("a", other)}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"another change on the way":   {last: lastOf("a", true, want), found: []*rollout{deployment("a", one, other).with(halfway), deployment("b", one)}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"recorded, not begun":         {last: lastOf("b", false, want), found: []*rollout{deployment("a", one), deployment("b", one)}, begins: "b", at: before, reason: ReasonRestarts},
		"recorded, begun":             {last: lastOf("b", false, want), found: []*rollout{deployment("a", one), deployment("b", one).with(func(r *rollout) { halfway(r); r.at = before })}, at: before, reason: ReasonRestarts},
		"recorded, and taken back":    {last: lastOf("b", false, want), found: []*rollout{deployment("b")}, reason: ReasonOutOfSpec},
		"recorded for something else": {last: lastOf("b", false, want), found: []*rollout{deployment("b", other)}, begins: "b", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"a budget":                    {found: []*rollout{deployment("a", one)}, budgets: []budget{none("x", map[string]string{"app": "b"}), none("y", map[string]string{"app": "a"})}, reason: ReasonRestarts, says: "Deployment a is restarted once PodDisruptionBudget y allows"},
		"a budget of its template":    {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.labels = map[string]string{"tier": "x"} })}, budgets: []budget{none("y", map[string]string{"tier": "x"})}, reason: ReasonRestarts, says: "once PodDisruptionBudget y allows"},
		"a budget of one":             {found: []*rollout{deployment("a", one), deployment("b", one)}, budgets: []budget{none("y", map[string]string{"app": "a"})}, begins: "b", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"a budget of all pods":        {found: []*rollout{deployment("a", one)}, budgets: []budget{none("all", nil)}, reason: ReasonRestarts, says: "PodDisruptionBudget all"},
		"a budget that allows it":     {found: []*rollout{deployment("a", one)}, budgets: []budget{{name: "y", selector: labels.Everything(), allows: true}}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"others make its pods":        {found: []*rollout{deployment("a", one).with(halfway), deployment("b", one)}, reason: ReasonRestarts},
		"its controller lags":         {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.observed = false })}, reason: ReasonRestarts},
		"a pod in spec is missing":    {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.ready = 2 })}, reason: ReasonRestarts},
		"a drifted one is not ready":  {found: []*rollout{deployment("a", drifted("a", "w", false)).with(func(r *rollout) { r.ready = 2 })}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"its like would be refused":   {found: []*rollout{deployment("a", one, refused("b", "w")), deployment("b", one)}, begins: "b", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"refused alone":               {found: []*rollout{deployment("a", refused("b", "w"))}, reason: ReasonOutOfSpec, says: "1 of them are of workloads that are not restarted, as pods like them would be refused"},
		"just restarted by others":    {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.at = "2026-07-01T13:59:01+02:00" }), deployment("b", one)}, reason: ReasonRestarts},
		"a minute after others":       {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.at = "2026-07-01T13:59:00+02:00" })}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"restarted in the future":     {memory: memory{progress: "Deployment a was restarted at 2999-01-01T00:00:00Z", waiting: begin.Add(-5 * time.Minute)}, found: []*rollout{deployment("a", one).with(func(r *rollout) { r.at = "2999-01-01T00:00:00Z" })}, reason: ReasonNoRestarts, says: "Deployment a was restarted at 2999-01-01T00:00:00Z"},
		"recorded before others'":     {last: lastOf("a", false, want), found: []*rollout{deployment("a", one).with(func(r *rollout) { r.at = "2026-07-01T11:30:00Z" })}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonRestarts},
		"on delete":                   {found: []*rollout{deployment("a", one).with(func(r *rollout) { r.kept = "its update strategy is OnDelete: delete its pods" })}, reason: ReasonOutOfSpec, says: "not restarted: Deployment a (its update strategy is OnDelete: delete its pods)"},
		"without a workload":          {alone: 2, reason: ReasonOutOfSpec, says: "2 of them are of no Deployment, StatefulSet or DaemonSet"},
		"the API refused":             {memory: memory{refusal: "no"}, found: []*rollout{deployment("a", one)}, begins: "a", at: begin.Format(time.RFC3339), reason: ReasonNoRestarts, says: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			got := restart(at(begin), &test.memory, test.last, test.found, test.alone, test.budgets)
			begins, at := "", ""
			if got.begin != nil {
				begins = got.begin.name
			}
			if got.restart != nil {
				at = got.restart.At
			}
			if begins != test.begins || at != test.at || got.reason != test.reason || !strings.Contains(got.message, test.says) {
				t.Errorf("begins %q at %q, %s: %s", begins, at, got.reason, got.message)
			}
			if got.held != (len(test.budgets) > 0 && begins == "" && got.reason == ReasonRestarts) {
				t.Errorf("held: %v", got.held)
			}
			if got.begin != nil && (got.restart == nil || got.restart.Begun || got.restart.UID != got.begin.uid || !slices.Equal(got.restart.Wants, got.begin.wants)) {
				t.Errorf("recorded is %+v", got.restart)
			}
		})
	}
}

// A restart whose mark is taken off its template, as tools that keep objects as files do, is not begun anew: that it began is recorded.
func TestBegunIsRecorded(t *testing.T) {
	m, w := memory{}, deployment("a", drifted("a", "w", true)).with(halfway)
	w.at = before
	got := restart(at(begin), &m, lastOf("a", false, "f w"), []*rollout{w}, 0, nil)
	if got.restart == nil || !got.restart.Begun {
		t.Fatalf("recorded is %+v", got.restart)
	}
	w.at = ""
	if got = restart(at(begin.Add(time.Minute)), &m, got.restart, []*rollout{w}, 0, nil); got.begin != nil {
		t.Errorf("%s begins again", got.begin)
	}
}

// Over hours in which workloads become ready one pod at a time, and the process may begin anew at any look with what is recorded alone, each is
// restarted once, and no two are at a time.
func TestRestartsOfWorkloads(t *testing.T) {
	const count = 5
	for crash := range 7 {
		m, record := memory{}, (*accounts.ProfileRestart)(nil)
		updated, begun := make([]int, count), make([]int, count)
		for i := range updated {
			updated[i] = 3
		}
		for look := range 200 {
			now := begin.Add(time.Duration(look) * 30 * time.Second)
			if look%7 == crash {
				m = memory{}
			}
			var found []*rollout
			under := 0
			for i := range count {
				w := deployment(string(rune('a' + i)))
				if begun[i] > 0 && updated[i] < 3 && look%3 == 0 {
					updated[i]++
				}
				for old := range 3 {
					if begun[i] == 0 || old >= updated[i] {
						p := drifted(string(rune('0'+old)), w.name, true)
						w.add(&p)
					}
				}
				if begun[i] > 0 && updated[i] < 3 {
					w.updated, w.total, under = updated[i], 4, under+1
				}
				if begun[i] > 0 {
					w.at = "restarted"
				}
				if len(w.wants) > 0 || record != nil && record.UID == w.uid {
					found = append(found, w)
				}
			}
			got := restart(at(now), &m, record, found, 0, nil)
			record = got.restart
			if got.begin == nil {
				continue
			}
			if under > 0 {
				t.Fatalf("look %d: %s begins while another one is under way", look, got.begin)
			}
			i := int(got.begin.name[0] - 'a')
			begun[i]++
			updated[i] = 0
			if look%7 != crash { // else it dies before it can record that
				record.Begun = true
			} else {
				record.At = "restarted"
			}
		}
		if !slices.Equal(begun, []int{1, 1, 1, 1, 1}) || record != nil {
			t.Errorf("restarted %v times, left is %+v", begun, record)
		}
	}
}
