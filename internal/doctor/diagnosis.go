package doctor

import (
	"encoding/json"
	"fmt"

	"github.com/credence-id/credence/internal/wording"
)

// The verdicts of a check of "doctor".
const (
	Pass    = "pass"
	Warn    = "warn"
	Fail    = "fail"
	Skipped = "skipped"
)

// Finding is what one check found.
type Finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
	// Hint is what to do; empty: nothing.
	Hint string `json:"hint,omitempty"`
}

// Diagnosis is what all checks found, in their order.
type Diagnosis struct {
	Findings []Finding
	// Unreachable is true if no API server answered, so that nothing else was checked.
	Unreachable bool
}

func (d *Diagnosis) add(check, verdict, hint, format string, arguments ...any) {
	detail := wording.Redact(fmt.Sprintf(format, arguments...))
	d.Findings = append(d.Findings, Finding{Check: check, Verdict: verdict, Detail: detail, Hint: hint})
}

func (d *Diagnosis) pass(check, format string, arguments ...any) {
	d.add(check, Pass, "", format, arguments...)
}

func (d *Diagnosis) skip(check, format string, arguments ...any) {
	d.add(check, Skipped, "", format, arguments...)
}

// Count is how many checks have a verdict.
func (d *Diagnosis) Count(verdict string) int {
	n := 0
	for _, finding := range d.Findings {
		if finding.Verdict == verdict {
			n++
		}
	}
	return n
}

// Counts are how many checks have each verdict.
func (d *Diagnosis) Counts() map[string]int {
	counts := map[string]int{}
	for _, verdict := range []string{Pass, Warn, Fail, Skipped} {
		counts[verdict] = d.Count(verdict)
	}
	return counts
}

// MarshalJSON implements json.Marshaler. The verdict on all is ok or problems.
func (d *Diagnosis) MarshalJSON() ([]byte, error) {
	verdict := "ok"
	if d.Count(Fail) > 0 {
		verdict = "problems"
	}
	return json.Marshal(struct {
		Verdict string         `json:"verdict"`
		Counts  map[string]int `json:"counts"`
		Checks  []Finding      `json:"checks"`
	}{verdict, d.Counts(), d.Findings})
}
