package conformance

import (
	"os"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// The reference has a row for every check, with every diagnosis that a planted defect gets.
func TestTheReferenceNamesEveryCheckAndDiagnosis(t *testing.T) {
	text := testkit.Need(os.ReadFile("../../../docs/reference/command-line.md"))(t)
	row := func(check string) string {
		for line := range strings.Lines(string(text)) {
			first, rest, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
			if strings.Contains(first, "`"+check+"`") {
				return rest
			}
		}
		return ""
	}
	for _, name := range Names() {
		if row(name) == "" {
			t.Errorf("the reference has no row for the check %s", name)
		}
	}
	for _, defect := range defects() {
		for _, found := range defect.want {
			check, diagnosis, _ := strings.Cut(found, "/")
			if !strings.Contains(row(check), "`"+diagnosis+"`") {
				t.Errorf("the row of %s does not name the diagnosis %s", check, diagnosis)
			}
		}
	}
}
