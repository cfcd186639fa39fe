package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

// findings lists what a report found as check/diagnosis.
func findings(report Report) []string {
	var found []string
	for _, check := range report.Checks {
		for _, finding := range check.Findings {
			found = append(found, check.Name+"/"+finding.Diagnosis)
		}
	}
	return found
}

// The documents that Credence serves pass every check, with a token and without.
func TestOurOwnDocumentsPass(t *testing.T) {
	handler := discovery.NewHandler(discovery.Settings{Issuer: siteIssuer})
	testkit.Must(t, handler.Publish(healthy(t)))
	s := newSite(t)
	s.withToken(t)
	s.options.Audience = "two"
	report := s.check(t, handler)
	for _, check := range report.Checks {
		if check.Verdict != Pass || check.Detail == "" {
			t.Errorf("%+v", check)
		}
	}
	if report.Verdict() != Pass || report.Count(Pass) != len(Names()) {
		t.Errorf("verdict %s, %d of %d passed", report.Verdict(), report.Count(Pass), len(Names()))
	}

	s.options.Token = ""
	report = s.check(t, handler)
	for _, check := range report.Checks {
		want := Pass
		if strings.HasPrefix(check.Name, "token-") {
			want = Skipped
		}
		if check.Verdict != want || want == Skipped && check.Detail != "skipped because no token was given" {
			t.Errorf("without a token: %+v", check)
		}
	}
}

func TestEveryDefectHasItsDiagnosis(t *testing.T) {
	covered := map[string]bool{}
	for name, defect := range defects() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			defect.plant(t, s)
			s.withToken(t)
			report := s.check(t, s)
			if diff := cmp.Diff(defect.want, findings(report)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if report.Verdict() != defect.verdict {
				t.Errorf("verdict %s, want %s", report.Verdict(), defect.verdict)
			}
			holdRules(t, report, s.options.Token)
		})
		for _, found := range defect.want {
			check, _, _ := strings.Cut(found, "/")
			covered[check] = true
		}
	}
	for _, name := range Names() {
		if !covered[name] {
			t.Errorf("no planted defect makes the check %s warn or fail", name)
		}
	}
}

// holdRules are what holds for every report.
func holdRules(t *testing.T, report Report, token string) {
	t.Helper()
	var names []string
	for _, check := range report.Checks {
		names = append(names, check.Name)
		switch {
		case (check.Verdict == Pass || check.Verdict == Skipped) && (check.Detail == "" || len(check.Findings) > 0):
			t.Errorf("the detail of %s is empty or too long: %+v", check.Name, check)
		case (check.Verdict == Warn || check.Verdict == Fail) && len(check.Findings) == 0:
			t.Errorf("%s finds nothing: %+v", check.Name, check)
		}
	}
	if diff := cmp.Diff(Names(), names); diff != "" {
		t.Errorf("checks of the report (-want +got):\n%s", diff)
	}
	encoded := testkit.Need(json.Marshal(report))(t)
	if signature := token[strings.LastIndex(token, ".")+1:]; len(signature) > 8 && strings.Contains(string(encoded), signature) {
		t.Error("the report shows the token")
	}
	if strings.Contains(string(encoded), secretMember) {
		t.Error("the report shows a private member")
	}
}

// A diagnosis that no planted defect gets may be one that nothing can get.
func TestEveryDiagnosisIsPlanted(t *testing.T) {
	planted := map[string]bool{}
	for _, defect := range defects() {
		for _, found := range defect.want {
			_, diagnosis, _ := strings.Cut(found, "/")
			planted[diagnosis] = true
		}
	}
	sources := testkit.Need(filepath.Glob("*.go"))(t)
	diagnosis := regexp.MustCompile(`o\.(?:fail|warn|away)\("([a-z0-9-]+)"`)
	seen := 0
	for _, source := range sources {
		text := testkit.Need(os.ReadFile(source))(t)
		for _, match := range diagnosis.FindAllStringSubmatch(string(text), -1) {
			seen++
			if strings.HasSuffix(match[1], "-") {
				continue // of a cloud: below
			}
			if !planted[match[1]] {
				t.Errorf("%s: no planted defect gets the diagnosis %s", source, match[1])
			}
		}
	}
	for _, cloud := range targets.Parties() {
		if limited := cloud.MaxSubject > 0 || cloud.Lifetime > 0; limited && !planted["long-for-"+cloud.Code] && !planted["length-for-"+cloud.Code] {
			t.Errorf("no planted defect is over the limits of %s", cloud.Name)
		}
	}
	if seen < len(Names()) {
		t.Errorf("%d diagnoses were found in the sources, there are more", seen)
	}
}

func TestNamesAreUniqueAndNeedsStandBefore(t *testing.T) {
	seen := map[string]bool{}
	for _, check := range checks() {
		for _, need := range check.needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not stand before it", check.name, need)
			}
		}
		if seen[check.name] {
			t.Errorf("there are two checks named %s", check.name)
		}
		seen[check.name] = true
	}
}
