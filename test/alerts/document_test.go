package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/rulefmt"
)

const document = "../../docs/reference/alerts.md"

// A person who is paged by an alert follows its link: there is one section for each, in the order of the rules.
func TestEveryAlertHasASection(t *testing.T) {
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, rule := range rules(t) {
		when := "at once"
		if rule.For > 0 {
			when = "after " + rule.For.String()
		}
		want = append(want, rule.Alert+" "+rule.Labels["severity"]+" "+when)
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (\S+)\n\nSeverity: (\w+), (.*)\.$`).FindAllStringSubmatch(string(content), -1) {
		got = append(got, heading[1]+" "+heading[2]+" "+heading[3])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections of %s differ from the alerts (-alerts +sections):\n%s", document, diff)
	}
}

// A part that is stopped, crashes or hangs can't be scraped: there is an alert for each job that the document has.
func TestEveryJobIsMissed(t *testing.T) {
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	jobs := regexp.MustCompile("(?m)^\\| `(credence-[a-z]+)` \\|").FindAllStringSubmatch(string(content), -1)
	if len(jobs) < 9 {
		t.Errorf("found %d jobs only", len(jobs))
	}
	for _, job := range jobs {
		if !slices.ContainsFunc(rules(t), func(rule rulefmt.Rule) bool { return strings.HasPrefix(rule.Expr, `absent(up{job="`+job[1]+`"} == 1)`) }) {
			t.Errorf("no alert fires while no target of the job %s can be scraped", job[1])
		}
	}
}
