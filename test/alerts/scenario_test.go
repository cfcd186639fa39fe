package alerts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// scenarios reads those of testdata. Each begins with a line of its alert and its name; below are series, and lines such as: fires 6m {cluster="one"}.
func scenarios(t *testing.T) []scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			below, isBelow := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  ")
			alert, name, isHead := strings.Cut(below, ": ")
			switch {
			case below == "" || strings.HasPrefix(below, "#"):
			case !isBelow && isHead:
				all = append(all, scenario{alert: alert, name: name, fires: map[string]time.Duration{}})
			case !isBelow || len(all) == 0:
				t.Fatalf("%s: %s", file, line)
			default:
				all[len(all)-1].add(t, below)
			}
		}
	}
	return all
}

func (s *scenario) add(t *testing.T, line string) {
	t.Helper()
	firing, isFiring := strings.CutPrefix(line, "fires ")
	if !isFiring {
		s.series = append(s.series, line)
		return
	}
	after, alert, _ := strings.Cut(firing, " ")
	since, err := time.ParseDuration(after)
	if err != nil {
		t.Fatalf("%s, %s: %v", s.alert, s.name, err)
	}
	s.fires[alert] = since
}

func TestAlerts(t *testing.T) {
	all := rules(t)
	for _, s := range scenarios(t) {
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
			if diff := cmp.Diff(s.fires, got); diff != "" {
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
		if !slices.ContainsFunc(scenarios(t), is(true)) {
			t.Errorf("no scenario shows that %s fires", rule.Alert)
		}
		if !slices.ContainsFunc(scenarios(t), is(false)) {
			t.Errorf("no scenario shows that %s does not fire", rule.Alert)
		}
	}
}
