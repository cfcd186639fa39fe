package drift

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

var begin = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// at is a moment at the default pace.
func at(now time.Time) moment { return moment{now, DefaultPeriods.Pace} }

// drifted is a pod of a workload, which may be empty.
func drifted(name, of string, ready bool) pod {
	p := pod{OutOfSpecPod: accounts.OutOfSpecPod{Name: name, Field: "f", Wants: "w"}, uid: name, ready: ready}
	if of != "" {
		p.controller = &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: of, UID: types.UID(of)}
	}
	return p
}

func refused(name, of string) pod {
	p := drifted(name, of, true)
	p.Refused = "it may not"
	return p
}

func replicas(name string, ready, desired int) workload {
	return workload{OwnerReference: metav1.OwnerReference{Kind: "ReplicaSet", Name: name, UID: types.UID(name)}, known: true, ready: ready, desired: desired}
}

func TestNext(t *testing.T) {
	const late = time.Hour
	for name, test := range map[string]struct {
		onChange  accounts.OnChange
		memory    memory
		after     time.Duration
		drifted   []pod
		workloads []workload
		evicts    string
		reason    string
		says      string
	}{
		"none has drifted":              {onChange: accounts.OnChangeEvict, after: late, reason: ReasonOutOfSpec},
		"it is reported alone":          {onChange: accounts.OnChangeReport, after: late, drifted: []pod{drifted("a", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, reason: ReasonOutOfSpec},
		"new pods are blocked alone":    {onChange: accounts.OnChangeBlockNew, after: late, drifted: []pod{drifted("a", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, reason: ReasonOutOfSpec},
		"the first minute":              {onChange: accounts.OnChangeEvict, after: 59 * time.Second, drifted: []pod{drifted("a", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, reason: ReasonEvictions},
		"after a minute":                {onChange: accounts.OnChangeEvict, after: 60 * time.Second, drifted: []pod{drifted("a", "w", true), drifted("b", "w", true)}, workloads: []workload{replicas("w", 2, 2)}, evicts: "a", reason: ReasonEvictions},
		"one a minute":                  {onChange: accounts.OnChangeEvict, memory: memory{acted: begin.Add(late - 59*time.Second)}, after: late, drifted: []pod{drifted("b", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, reason: ReasonEvictions},
		"the next minute":               {onChange: accounts.OnChangeEvict, memory: memory{acted: begin.Add(late - time.Minute)}, after: late, drifted: []pod{drifted("b", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, evicts: "b", reason: ReasonEvictions},
		"a new pod is not ready":        {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{drifted("b", "w", true)}, workloads: []workload{replicas("w", 1, 2)}, reason: ReasonEvictions},
		"for long":                      {onChange: accounts.OnChangeEvict, memory: memory{waiting: begin}, after: late, drifted: []pod{drifted("b", "w", true)}, workloads: []workload{replicas("w", 1, 2)}, reason: ReasonStopped, says: "ReplicaSet w has 1 of 2 pods ready"},
		"one workload stops all":        {onChange: accounts.OnChangeEvict, memory: memory{waiting: begin}, after: late, drifted: []pod{drifted("a", "v", true), drifted("b", "w", true)}, workloads: []workload{replicas("v", 1, 1), replicas("w", 1, 2)}, reason: ReasonStopped},
		"a drifted one is not ready":    {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{drifted("a", "w", true), drifted("b", "w", false)}, workloads: []workload{replicas("w", 1, 2)}, evicts: "b", reason: ReasonEvictions},
		"without a controller":          {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{drifted("a", "", true)}, reason: ReasonOutOfSpec, says: "1 of them are of no ReplicaSet"},
		"of an unknown controller":      {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{drifted("a", "job", true)}, reason: ReasonOutOfSpec, says: "make them anew"},
		"its like would be refused":     {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{refused("a", "w")}, workloads: []workload{replicas("w", 1, 1)}, reason: ReasonOutOfSpec, says: "1 of them are not evicted, as pods like them would be refused"},
		"a budget holds one":            {onChange: accounts.OnChangeEvict, memory: memory{held: map[string]time.Time{"a": begin}}, after: late, drifted: []pod{drifted("a", "w", true), drifted("b", "w", true)}, workloads: []workload{replicas("w", 2, 2)}, evicts: "b", reason: ReasonEvictions},
		"budgets held all":              {onChange: accounts.OnChangeEvict, memory: memory{held: map[string]time.Time{"a": begin.Add(1), "b": begin}}, after: late, drifted: []pod{drifted("a", "w", true), drifted("b", "w", true)}, workloads: []workload{replicas("w", 2, 2)}, evicts: "b", reason: ReasonEvictions},
		"a controller, and one without": {onChange: accounts.OnChangeEvict, after: late, drifted: []pod{drifted("a", "", true), drifted("b", "w", true)}, workloads: []workload{replicas("w", 1, 1)}, evicts: "b", reason: ReasonEvictions},
	} {
		t.Run(name, func(t *testing.T) {
			m := test.memory
			m.notice(begin, 1, test.drifted)
			workloads := map[string]workload{}
			for _, w := range test.workloads {
				workloads[string(w.UID)] = w
			}
			got := next(at(begin.Add(test.after)), test.onChange, &m, test.drifted, workloads)
			evicts := ""
			if got.evict != nil {
				evicts = got.evict.Name
			}
			if evicts != test.evicts || got.reason != test.reason || !strings.Contains(got.message, test.says) {
				t.Errorf("evicts %q, %s: %s", evicts, got.reason, got.message)
			}
		})
	}
}

// A further change begins the minute anew; fewer pods of the same do not.
func TestEachChangeSettles(t *testing.T) {
	m := memory{}
	two := []pod{drifted("a", "w", true), drifted("b", "w", true)}
	workloads := map[string]workload{"w": replicas("w", 2, 2)}
	m.notice(begin, 1, two)
	m.notice(begin.Add(50*time.Second), 1, two[1:])
	if got := next(at(begin.Add(time.Minute)), accounts.OnChangeEvict, &m, two[1:], workloads); got.evict == nil {
		t.Errorf("not evicted after a minute: %+v", got)
	}
	m.notice(begin.Add(90*time.Second), 2, two)
	if got := next(at(begin.Add(2*time.Minute)), accounts.OnChangeEvict, &m, two, workloads); got.evict != nil {
		t.Error("evicted half a minute after another change")
	}
}

// Over hours in which a random one of the workload's pods may fail to become ready, no more than one pod at a time is missing, and none is
// evicted within a minute of another.
func TestEvictionsOfAWorkload(t *testing.T) {
	const desired = 20
	m, stale, ready := memory{}, desired, desired
	var last time.Time
	for minute := range 240 {
		now := begin.Add(time.Duration(minute) * 30 * time.Second)
		if ready < desired && minute%7 == 0 { // new pods take a while
			ready++
		}
		var pods []pod
		for i := range stale {
			pods = append(pods, drifted(string(rune('a'+i)), "w", true))
		}
		m.notice(now, 1, pods)
		got := next(at(now), accounts.OnChangeEvict, &m, pods, map[string]workload{"w": replicas("w", ready, desired)})
		if got.evict == nil {
			continue
		}
		if ready < desired || now.Sub(last) < DefaultPeriods.Pace {
			t.Fatalf("evicted at %s with %d ready, after one at %s", now, ready, last)
		}
		m.acted, last = now, now
		stale, ready = stale-1, ready-1
	}
	if stale > 0 {
		t.Errorf("%d pods were never evicted", stale)
	}
}

// The memory of a profile does not grow with the changes of its spec, nor with the pods that budgets hold.
func TestMemoryIsBounded(t *testing.T) {
	m, pods := memory{}, []pod{drifted("a", "w", true)}
	for i := range 100 {
		now := begin.Add(time.Duration(i) * time.Minute)
		m.notice(now, int64(i), pods)
		m.hold(now, &pod{uid: string(rune('a' + i))})
	}
	if len(m.wants) != 1 || len(m.held) > 2 {
		t.Errorf("remembered are %d differences and %d pods", len(m.wants), len(m.held))
	}
}

// Five minutes are those since pods were blocked last: not those since they were blocked before.
func TestWaitingEndsWithWhatBlocks(t *testing.T) {
	m, pods := memory{waiting: begin}, []pod{refused("a", "w")}
	m.notice(begin, 1, pods)
	next(at(begin.Add(time.Hour)), accounts.OnChangeEvict, &m, pods, map[string]workload{"w": replicas("w", 1, 1)})
	if !m.waiting.IsZero() {
		t.Errorf("waits since %s, though nothing blocks", m.waiting)
	}
}

func TestAfter(t *testing.T) {
	names := []string{"a", "b", "c"}
	for last, want := range map[string]string{"": "abc", "a": "bca", "aa": "bca", "b": "cab", "c": "abc", "z": "abc"} {
		if got := strings.Join(after(names, last), ""); got != want {
			t.Errorf("after %q: %s, want %s", last, got, want)
		}
	}
}
