package alerts

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// scenario is what a Prometheus scrapes, and which alert must come of it.
type scenario struct {
	alert, name string
	series      []string
	// fires has when the alert fires first, by its labels: neither earlier nor later. Empty: it never does.
	fires map[string]time.Duration
}

func scenarios() []scenario {
	return slices.Concat(keyScenarios(), tokenScenarios(), discoveryScenarios(), certificateScenarios(), profileScenarios(), deliveryScenarios(), admissionScenarios(), componentScenarios())
}

func TestAlerts(t *testing.T) {
	all := rules(t)
	for _, s := range scenarios() {
		t.Run(s.alert+"/"+s.name, func(t *testing.T) {
			i := slices.IndexFunc(all, func(rule rulefmt.Rule) bool { return rule.Alert == s.alert })
			if i < 0 {
				t.Fatalf("there is no alert %s", s.alert)
			}
			got := map[string]time.Duration{}
			for alert, firing := range scrape(t, s.series).firings(t, all[i]) {
				got[alert] = firing.since
				annotate(t, all[i], firing.sample)
			}
			want := s.fires
			if want == nil {
				want = map[string]time.Duration{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("first firings (-want +got):\n%s", diff)
			}
		})
	}
}

// An alert that was never seen to fire may be one that cannot, and one that was never seen quiet may be one that fires all the time.
func TestEveryAlertIsSeenFiringAndQuiet(t *testing.T) {
	for _, rule := range rules(t) {
		is := func(fires bool) func(scenario) bool {
			return func(s scenario) bool { return s.alert == rule.Alert && (len(s.fires) > 0) == fires }
		}
		if !slices.ContainsFunc(scenarios(), is(true)) {
			t.Errorf("no scenario shows that %s fires", rule.Alert)
		}
		if !slices.ContainsFunc(scenarios(), is(false)) {
			t.Errorf("no scenario shows that %s does not fire", rule.Alert)
		}
	}
}
