package cli

import (
	"fmt"
	"io"
	"strings"
)

// The verdicts of a check of "doctor".
const (
	verdictPass    = "pass"
	verdictWarn    = "warn"
	verdictFail    = "fail"
	verdictSkipped = "skipped"
)

// finding is what one check found.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
	// Hint is what to do; empty: nothing.
	Hint string `json:"hint,omitempty"`
}

// diagnosis is what all checks found, in their order.
type diagnosis struct {
	findings []finding
	// unreachable is true if no API server answered, so that nothing else was checked.
	unreachable bool
}

func (d *diagnosis) add(check, verdict, hint, format string, arguments ...any) {
	detail := looksLikeToken.ReplaceAllString(fmt.Sprintf(format, arguments...), "[redacted]")
	d.findings = append(d.findings, finding{Check: check, Verdict: verdict, Detail: detail, Hint: hint})
}

func (d *diagnosis) pass(check, format string, arguments ...any) {
	d.add(check, verdictPass, "", format, arguments...)
}

func (d *diagnosis) skip(check, format string, arguments ...any) {
	d.add(check, verdictSkipped, "", format, arguments...)
}

func (d *diagnosis) count(verdict string) int {
	n := 0
	for _, finding := range d.findings {
		if finding.Verdict == verdict {
			n++
		}
	}
	return n
}

func (d *diagnosis) print(w io.Writer, output string) error {
	counts := map[string]int{}
	for _, verdict := range []string{verdictPass, verdictWarn, verdictFail, verdictSkipped} {
		counts[verdict] = d.count(verdict)
	}
	if output != "text" {
		verdict := "ok"
		if counts[verdictFail] > 0 {
			verdict = "problems"
		}
		return printObject(w, output, struct {
			Verdict string         `json:"verdict"` // ok or problems
			Counts  map[string]int `json:"counts"`
			Checks  []finding      `json:"checks"`
		}{verdict, counts, d.findings})
	}
	width := 0
	for _, finding := range d.findings {
		width = max(width, len(finding.Check))
	}
	var text strings.Builder
	for _, finding := range d.findings {
		fmt.Fprintf(&text, "%-7s  %-*s  %s\n", finding.Verdict, width, finding.Check, oneLine(finding.Detail))
		if finding.Hint != "" {
			fmt.Fprintf(&text, "%-7s  %-*s  → %s\n", "", width, "", oneLine(finding.Hint))
		}
	}
	fmt.Fprintf(&text, "%d passed, %d warned, %d failed, %d skipped\n", counts[verdictPass], counts[verdictWarn], counts[verdictFail], counts[verdictSkipped])
	_, err := io.WriteString(w, printable(text.String()))
	return err
}

// some lists the first of many, and the number of the others.
func some(things []string) string {
	const shown = 3
	if len(things) <= shown {
		return strings.Join(things, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(things[:shown], ", "), len(things)-shown)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
