package targets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text := testkit.Need(os.ReadFile(filepath.Join(path...)))(t)
	return string(text)
}

// Each folder of a target system is in the list, and in order; each runs the suites of its sides.
func TestEveryFolderIsInTheList(t *testing.T) {
	entries := testkit.Need(os.ReadDir("../target"))(t)
	var folders, listed []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "targettest" {
			folders = append(folders, entry.Name())
		}
	}
	for _, system := range systems {
		listed = append(listed, system.Name)
		tests := read(t, "../target", system.Name, system.Name+"_test.go")
		if !strings.Contains(tests, "targettest.Sides(") || system.Adapter != nil && !strings.Contains(tests, "targettest.Run(") {
			t.Errorf("%s does not run the suites of its sides", system.Name)
		}
	}
	if diff := cmp.Diff(folders, listed); diff != "" {
		t.Errorf("systems (-folders +list):\n%s", diff)
	}
}

// Each list of the documents has each system that it is about.
func TestDocumentsHaveEverySystem(t *testing.T) {
	reference := func(name string) string { return read(t, "../../docs/reference", name) }
	section := func(document, title string) string {
		_, text, _ := strings.Cut(document, "\n## "+title+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		return text
	}
	checks := reference("command-line.md")
	commands, variables, algorithms, types := section(checks, "credence trust"),
		section(reference("labels-and-annotations.md"), "Reserved variables"), section(reference("claims.md"), "Algorithms"), reference("target-systems.md")
	for _, system := range systems {
		row := "\n| `" + system.Name + "`"
		if system.Trust.Commands != nil && !strings.Contains(commands, row) {
			t.Errorf("command-line.md: credence trust has no row for %s", system.Name)
		}
		if p := system.Party; p.MaxSubject > 0 && !regexp.MustCompile(`(?m)^\| .token-subject.*-for-`+p.Code+"`").MatchString(checks) ||
			p.Lifetime > 0 && !regexp.MustCompile(`(?m)^\| .token-lifetime.*-for-`+p.Code+"`").MatchString(checks) {
			t.Errorf("command-line.md: the checks of a token have no finding for %s", p.Code)
		}
		if system.Adapter == nil {
			continue
		}
		if !strings.Contains(variables, row) {
			t.Errorf("labels-and-annotations.md: the reserved variables have no row for %s", system.Name)
		}
		if !strings.Contains(algorithms, "`"+system.Name+"`") {
			t.Errorf("claims.md: no algorithm for %s", system.Name)
		}
		if !strings.Contains(types, "\n## "+system.Name) {
			t.Errorf("target-systems.md has no section for %s", system.Name)
		}
		if want := row + limitsOf(system.Adapter.Limits()); !strings.Contains(types, want) {
			t.Errorf("target-systems.md: the limits of %s are not%s", system.Name, want)
		}
	}
}

// limitsOf are limits as a row of the reference has them.
func limitsOf(l target.Limits) string {
	algorithms := make([]string, len(l.Algorithms))
	for i, algorithm := range l.Algorithms {
		algorithms[i] = string(algorithm)
	}
	cells := []string{strings.Join(algorithms, ", "), "", "", ""}
	if l.Lifetime > 0 {
		cells[1] = strings.TrimSuffix(strings.TrimSuffix(l.Lifetime.String(), "0s"), "0m")
	}
	if l.Subject > 0 {
		cells[2] = fmt.Sprintf("%d bytes", l.Subject)
	}
	switch {
	case l.Audiences > 0:
		cells[3] = fmt.Sprintf("%d, %d characters each", l.Audiences, l.Audience)
	case l.Audience > 0:
		cells[3] = fmt.Sprintf("%d characters each", l.Audience)
	}
	var row strings.Builder
	for _, cell := range cells {
		row.WriteString(strings.TrimSuffix(" | "+cell, " "))
	}
	return row.String() + " |"
}
