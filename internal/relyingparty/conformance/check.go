package conformance

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"
)

// Options are the issuer to check and the settings of the check. Only Issuer is required.
type Options struct {
	// Issuer is the issuer's URL as relying parties have it, byte for byte. An unacceptable URL is a finding.
	Issuer string
	// Client fetches the documents; its redirect policy is not used. nil: a client that trusts the authorities of this
	// machine.
	Client *http.Client
	// Token is checked too, unless it is empty. Audience is the one that it must be for; empty: any.
	Token, Audience string
	// Clock returns the time, and measures how long an answer takes. nil: time.Now.
	Clock func() time.Time
	// Timeout bounds each of the six requests. Zero: 15 s.
	Timeout time.Duration
}

// defaultTimeout is three times what the slowest relying party waits.
const defaultTimeout = 15 * time.Second

// check is one row of the list of checks. It runs only if no check that it needs has failed or was skipped.
type check struct {
	name  string
	needs []string
	judge func(*evidence, *outcome)
}

// Run checks an issuer. All findings are in the report: it returns no errors.
func Run(ctx context.Context, options Options) Report {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	options.Timeout = cmp.Or(options.Timeout, defaultTimeout)
	evidence := gather(ctx, options)
	report := Report{Issuer: options.Issuer}
	blocked := map[string]string{} // why what needs the check is skipped
	for _, check := range checks() {
		var outcome outcome
		if i := slices.IndexFunc(check.needs, func(name string) bool { return blocked[name] != "" }); i >= 0 {
			outcome.skipped = blocked[check.needs[i]]
		} else {
			check.judge(evidence, &outcome)
		}
		done := outcome.check(check.name)
		switch done.Verdict {
		case Fail:
			blocked[check.name] = "skipped because of " + check.name
		case Skipped:
			blocked[check.name] = done.Detail
		}
		report.Checks = append(report.Checks, done)
	}
	return report
}

// Names lists the names of all checks, in the order of reports.
func Names() []string {
	var names []string
	for _, check := range checks() {
		names = append(names, check.name)
	}
	return names
}

// checks is the list of all checks. A check stands behind those that it needs.
func checks() []check {
	return slices.Concat(issuerChecks(), transportChecks(),
		documentChecks("configuration", func(e *evidence) *document { return &e.configuration }), configurationChecks(),
		documentChecks("jwks", func(e *evidence) *document { return &e.keySet }), keyChecks(), tokenChecks())
}
