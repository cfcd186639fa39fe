package alerts

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
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
