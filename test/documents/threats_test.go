package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// Each threat has a guard, and a test that attacks it: one that exists, and under that name only once.
func TestThreatsAreAttacked(t *testing.T) {
	declared := declaredTests(t)
	threats := 0
	for _, row := range tables(t, "docs/concepts/threat-model.md", "attacked by") {
		threats++
		name := row[0]
		if slices.Contains(row, "") {
			t.Errorf("the row %q has an empty cell", name)
		}
		tests := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(row[len(row)-1], -1)
		if len(tests) == 0 {
			t.Errorf("no test attacks the guard against %q", name)
		}
		for _, test := range tests {
			if n := declared[test[1]]; n != 1 {
				t.Errorf("%q: %d tests have the name %s, want one", name, n, test[1])
			}
		}
	}
	if threats < 50 {
		t.Errorf("found %d threats only", threats)
	}
}

// Every process that an installation runs is looked at as one that was taken over.
func TestThreatModelHasEveryPart(t *testing.T) {
	var parts []string
	for _, row := range tables(t, "docs/concepts/threat-model.md", "attacked by") {
		if len(row) == 4 {
			parts = append(parts, row[0])
		}
	}
	for _, row := range tables(t, "ARCHITECTURE.md", "stores") {
		if part := row[0]; part != "up" && part != "devcluster" && !slices.Contains(parts, part) { // these two are for a machine of one person
			t.Errorf("the threat model does not have the part %s", part)
		}
	}
	if len(parts) == 0 {
		t.Error("the threat model has no part that was taken over")
	}
}

// tables returns the cells of the rows of all tables of a document whose last column has that heading.
func tables(t *testing.T, document, last string) [][]string {
	t.Helper()
	content := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, document)))(t)
	var rows [][]string
	inside := false
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[len(cells)-1] == last:
			inside = true
		case inside && strings.Trim(cells[0], "-") != "":
			rows = append(rows, cells)
		}
	}
	return rows
}
