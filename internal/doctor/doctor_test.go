package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/cluster/clustertest"
)

// now is the time of every examination.
var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func examination() *Examination { return &Examination{Now: func() time.Time { return now }} }

func open(t *testing.T, documents string) *cluster.API {
	t.Helper()
	return clustertest.Open(t, clustertest.Cluster{Objects: documents})
}

// joined puts lists of documents together.
func joined(documents ...string) string { return strings.Join(documents, "\n---\n") }

// deny refuses a request to the user.
func deny(verb, resource string) string {
	return "{kind: Deny, verb: " + verb + ", resource: " + resource + "}"
}

// expect compares findings, in their order: each expectation is a verdict, and a part of the detail.
func expect(t *testing.T, found *Diagnosis, want ...string) {
	t.Helper()
	var got []string
	for _, f := range found.Findings {
		got = append(got, f.Verdict+": "+f.Detail)
	}
	if !slices.EqualFunc(got, want, func(got, want string) bool {
		verdict, part, _ := strings.Cut(want, ": ")
		return strings.HasPrefix(got, verdict+": ") && strings.Contains(got, part)
	}) {
		t.Errorf("findings:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
