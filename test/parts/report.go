package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report prints the failures, each with the command that runs it alone, and the counts. It reports whether all parts passed.
func report(w io.Writer, results []result, slowest int) bool {
	var times []timing
	passed, failed, skipped, all := 0, 0, 0, true
	for _, r := range results {
		passed, failed, skipped = passed+r.passed, failed+r.failedTests, skipped+r.skipped
		times = append(times, r.times...)
		if !r.failed() {
			continue
		}
		all = false
		for _, f := range r.failures {
			fmt.Fprintf(w, "\nFAIL %s %s\n%s  run it alone: %s\n", f.pkg, f.test, lastLines(f.output, 40), r.alone(f))
		}
		if len(r.failures) == 0 {
			content, _ := os.ReadFile(r.log) // without it, the error alone
			fmt.Fprintf(w, "\nFAIL %s: %v\n%s  run it alone: (cd ./%s && %s)\n", r.name, r.err, lastLines(string(content), 20), r.dir, r.line())
		}
	}
	slices.SortStableFunc(times, func(a, b timing) int { return cmp.Compare(b.took, a.took) })
	for _, t := range times[:min(slowest, len(times))] {
		fmt.Fprintf(w, "%8.1f s  %s %s\n", t.took.Seconds(), t.pkg, t.test)
	}
	if !all && failed == 0 {
		failed = 1 // a part without tests
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return all
}

// lastLines returns the last n lines, indented.
func lastLines(text string, n int) string {
	lines := slices.Collect(strings.Lines(strings.TrimRight(text, "\n") + "\n"))
	var b strings.Builder
	for _, line := range lines[max(0, len(lines)-n):] {
		b.WriteString("    " + line)
	}
	return b.String()
}

// alone is the command that runs what failed, from the top folder of the checkout.
func (p part) alone(f failure) string {
	run := ""
	if f.test != "" {
		run = " -run '^" + strings.ReplaceAll(f.test, "/", "$/^") + "$'"
	}
	environment := ""
	if strings.Contains(f.pkg, "/test/") || strings.HasPrefix(p.dir, "test/") {
		environment = `CREDENCE_BIN="$PWD/bin" `
	}
	if p.kubernetes != "" {
		environment = fmt.Sprintf(`CREDENCE_BIN="$PWD/bin/kubernetes/%[1]s" CREDENCE_KUBERNETES_PROGRAMS="$PWD/bin/kubernetes/%[1]s" `, p.kubernetes)
	}
	race := ""
	if p.race {
		environment, race = environment+"CGO_ENABLED=1 ", " -race"
	}
	folder := ""
	if p.dir != "" && p.dir != "." {
		folder = " -C " + filepath.ToSlash(p.dir)
	}
	return environment + "go" + folder + " test -vet=off -count=1" + race + run + " " + f.pkg
}
