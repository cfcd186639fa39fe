package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is what one check, or the whole of them, came to.
type Verdict string

// The verdicts. A report as a whole is Pass, Fail or Unknown; its checks are never Unknown.
const (
	Pass    Verdict = "pass"
	Warn    Verdict = "warn"    // some relying party refuses it, or an operation will hurt
	Fail    Verdict = "fail"    // relying parties refuse it, or must not be given it
	Skipped Verdict = "skipped" // its subject is not there, because of an earlier check or without a token
	Unknown Verdict = "unknown" // a server could not be reached or did not do its work, so that nothing is known
)

// Finding is one defect.
type Finding struct {
	Verdict Verdict `json:"verdict"` // Warn or Fail
	// Diagnosis names the defect among those of its check, such as trailing-slash; it is stable.
	Diagnosis string `json:"diagnosis"`
	// Detail has the fault, its place, and the correction.
	Detail string `json:"detail"`

	outage bool // a server was away: its documents are unknown
}

// Check is the outcome of one check.
type Check struct {
	// Name is stable; Names lists all of them.
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Detail is what was seen by a check that passed, and why one was skipped.
	Detail string `json:"detail,omitempty"`
	// Findings are the defects behind Warn and Fail, at least one.
	Findings []Finding `json:"findings,omitempty"`
}

// Report is the outcome of all checks, in their order.
type Report struct {
	Issuer string  `json:"issuer"`
	Checks []Check `json:"checks"`
}

// Verdict is Fail if a check failed, Unknown if the only failures are servers without an answer, and Pass
// otherwise, despite warnings.
func (r Report) Verdict() Verdict {
	verdict := Pass
	for _, check := range r.Checks {
		for _, finding := range check.Findings {
			switch {
			case finding.Verdict == Fail && !finding.outage:
				return Fail
			case finding.Verdict == Fail:
				verdict = Unknown
			}
		}
	}
	return verdict
}

// Count returns how many checks came to a verdict.
func (r Report) Count(verdict Verdict) int {
	count := 0
	for _, check := range r.Checks {
		if check.Verdict == verdict {
			count++
		}
	}
	return count
}

// outcome is what a check fills in.
type outcome struct {
	seen     string
	skipped  string
	findings []Finding
}

func (o *outcome) pass(format string, args ...any) { o.seen = fmt.Sprintf(format, args...) }

func (o *outcome) skip(format string, args ...any) { o.skipped = fmt.Sprintf(format, args...) }

// skipIfNothingSeen skips a check that neither passed nor found anything.
func (o *outcome) skipIfNothingSeen(why string) {
	if o.seen == "" && len(o.findings) == 0 {
		o.skip("skipped because %s", why)
	}
}

func (o *outcome) warn(diagnosis, format string, args ...any) {
	o.findings = append(o.findings, Finding{Verdict: Warn, Diagnosis: diagnosis, Detail: fmt.Sprintf(format, args...)})
}

func (o *outcome) fail(diagnosis, format string, args ...any) {
	o.findings = append(o.findings, Finding{Verdict: Fail, Diagnosis: diagnosis, Detail: fmt.Sprintf(format, args...)})
}

// away is a failure that is not of the issuer's documents.
func (o *outcome) away(diagnosis, format string, args ...any) {
	o.fail(diagnosis, format, args...)
	o.findings[len(o.findings)-1].outage = true
}

func (o *outcome) check(name string) Check {
	check := Check{Name: name, Verdict: Pass, Detail: o.seen, Findings: o.findings}
	switch {
	case o.skipped != "":
		check.Verdict, check.Detail, check.Findings = Skipped, o.skipped, nil
	case len(o.findings) > 0:
		check.Verdict, check.Detail = Warn, ""
		if slices.ContainsFunc(o.findings, func(f Finding) bool { return f.Verdict == Fail }) {
			check.Verdict = Fail
		}
	}
	return check
}

// words quotes and joins values for a sentence.
func words(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("%.200q", value)
	}
	return strings.Join(quoted, ", ")
}
