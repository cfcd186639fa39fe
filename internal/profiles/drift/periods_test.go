package drift

import (
	"strings"
	"testing"
	"time"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

func TestPeriods(t *testing.T) {
	for complaint, periods := range map[string]Periods{
		"": DefaultPeriods,
		"--drift-interval 0s must be between 1s and 5m0s":               {Pace: time.Minute},
		"--drift-interval 6m0s must be between":                         {Interval: 6 * time.Minute, Pace: time.Hour},
		"--drift-pace 29s must be at least the --drift-interval, 30s: ": {Interval: 30 * time.Second, Pace: 29 * time.Second},
	} {
		if err := periods.Validate(); (err == nil) != (complaint == "") || err != nil && !strings.Contains(err.Error(), complaint) {
			t.Errorf("%+v: %v, want %q", periods, err, complaint)
		}
	}
}

// A quick pace is that of changes, evictions and reports, and is worded; one workload is still restarted no more than once in a minute.
func TestPace(t *testing.T) {
	const pace = 10 * time.Second
	pods, w := []pod{drifted("a", "w", true)}, map[string]workload{"w": replicas("w", 1, 1)}
	m := memory{}
	m.notice(begin, 1, pods)
	if got := next(moment{begin.Add(pace - 1), pace}, accounts.OnChangeEvict, &m, pods, w); got.evict != nil || got.message != "they are evicted, one every 10s" {
		t.Errorf("at once: %+v", got)
	}
	if got := next(moment{begin.Add(pace), pace}, accounts.OnChangeEvict, &m, pods, w); got.evict == nil {
		t.Errorf("after a pace: %+v", got)
	}
	w["w"] = replicas("w", 1, 2)
	m.waiting = begin
	if got := next(moment{begin.Add(5 * pace), pace}, accounts.OnChangeEvict, &m, pods, w); got.reason != ReasonStopped {
		t.Errorf("after five paces: %+v", got)
	}
	just := deployment("w", pods...).with(func(r *rollout) { r.at = begin.Add(-2 * pace).Format(time.RFC3339) })
	if got := restart(moment{begin, pace}, &memory{}, nil, []*rollout{just}, 0, nil); got.begin != nil {
		t.Error("restarted twice within a minute")
	}
}
