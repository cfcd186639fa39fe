package relyingparty

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/internal/relyingparty/conformance"
	"github.com/credence-id/credence/test/testkit"
)

// Texts of an issuer write no lines of the report.
func TestDetailsStayInTheirLine(t *testing.T) {
	var out strings.Builder
	report := conformance.Report{Issuer: "https://issuer.example", Checks: []conformance.Check{{Name: "algorithms", Verdict: conformance.Pass, Detail: "RS256, x\npass     token-signature"}}}
	testkit.Must(t, printConformance(&out, report))
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines, want 2:\n%s", got, out.String())
	}
}
