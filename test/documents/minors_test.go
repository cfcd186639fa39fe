package documents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/minors"
	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// TestTableOfMinors compares the table of install.md with what the programs say. UPDATE=1 writes it anew.
func TestTableOfMinors(t *testing.T) {
	known := minors.All()
	var table, notes strings.Builder
	table.WriteString("| feature |")
	for minor := known.Oldest; minor <= known.Newest; minor++ {
		fmt.Fprintf(&table, " 1.%d |", minor)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", known.Newest-known.Oldest+1) + "\n")
	count := 0
	for _, feature := range known.Features {
		marks := map[string]int{}
		fmt.Fprintf(&table, "| %s |", feature.Name)
		for minor := known.Oldest; minor <= known.Newest; minor++ {
			less := feature.On(minor)
			if less == nil {
				table.WriteString(" full |")
				continue
			}
			if marks[less.Means] == 0 {
				count++
				marks[less.Means] = count
				fmt.Fprintf(&notes, "%d. %s\n", count, strings.ToUpper(less.Means[:1])+less.Means[1:]+".")
			}
			fmt.Fprintf(&table, " %s (%d) |", less.How, marks[less.Means])
		}
		table.WriteString("\n")
	}
	path := filepath.Join(documents.Repository, "docs", "howto", "install.md")
	content := testkit.Need(os.ReadFile(path))(t)
	want := table.String() + "\n" + notes.String()
	there := regexp.MustCompile(`(?m)^\| feature \|(.*\n)+?\n(\d\. .*\n)*`)
	if found := there.Find(content); string(found) != want && os.Getenv("UPDATE") == "" {
		t.Errorf("install.md has\n%s\nwant\n%s", found, want)
	} else if string(found) != want {
		testkit.Must(t, os.WriteFile(path, there.ReplaceAllLiteral(content, []byte(want)), 0o600))
	}
}
