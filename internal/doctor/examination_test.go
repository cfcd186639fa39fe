package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
)

// Tokens of workload identities are those of users of the cluster only where that is meant.
func TestHostDoesNotTrustTheIssuer(t *testing.T) {
	ring := &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{Issuer: "https://id"}}
	for answer, want := range map[string]string{
		"[invalid bearer token, unknown issuer]":             "pass: does not take tokens of workload identities for those of its users",
		"[invalid bearer token, oidc: verify token: failed]": "warn: the cluster trusts https://id",
	} {
		found := &Diagnosis{}
		checkHost(t.Context(), found, clustertest.Open(t, clustertest.Cluster{ReviewError: answer}), ring)
		expect(t, found, want)
	}
	found := &Diagnosis{}
	checkHost(t.Context(), found, open(t, deny("create", "tokenreviews")), ring)
	checkHost(t.Context(), found, open(t, ""), nil)
	expect(t, found, "skipped: you may not create tokenreviews", "skipped: the issuer is not known")
}

// The checks are in the order of a token's way. Those of an API that is not available are skipped, the others are made.
func TestExamineWithoutAnAPI(t *testing.T) {
	api := open(t, joined(identitiesService, lease("credence-agent", "agent-1", 0), namespace("team", "")))
	d := examination()
	found := d.Examine(t.Context(), cluster.Both{Workload: api, Identity: api}, Selection{Home: "team", Namespace: "team"})
	var checks []string
	for _, f := range found.Findings {
		checks = append(checks, f.Check+" "+f.Verdict)
	}
	want := "api pass, kubernetes pass, clock skipped, apiservice fail, apiservice pass, webhook fail, agent pass, annotations pass, keys fail, identities skipped, tokens skipped, issuer skipped, host skipped"
	if got := strings.Join(checks, ", "); got != want {
		t.Errorf("checks are\n%s, want\n%s", got, want)
	}
}

func TestDiagnosisAsJSON(t *testing.T) {
	d := &Diagnosis{}
	d.pass("a", "well")
	d.add("b", Warn, "do it", "the token eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln is %s", "old")
	for _, verdict := range []string{"ok", "problems"} {
		text, err := json.Marshal(d)
		if err != nil || !strings.HasPrefix(string(text), `{"verdict":"`+verdict+`","counts":{"fail":`) || !strings.Contains(string(text), `{"check":"b","verdict":"warn","detail":"the token [redacted] is old","hint":"do it"}`) {
			t.Errorf("%s, %v, want %s", text, err, verdict)
		}
		d.add("c", Fail, "", "broken")
	}
}
