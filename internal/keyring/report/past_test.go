package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/report"
)

// A status gives back what it remembers of revoked keys, also until when their tokens may be valid.
func TestPastOfAStatus(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := keys.Past{Revoked: []keys.Compromised{
		{ID: "a", Algorithm: "ES256", RevokedAt: at, LastExpiry: at.Add(time.Hour), Cause: keys.Cause{By: "jane", Reason: "leaked"}},
		{ID: "b", Algorithm: "RS256", RevokedAt: at, Cause: keys.Cause{By: "jane"}},
	}}
	var status v1alpha1.KeyRingStatus
	report.Remember(&status, want)
	if diff := cmp.Diff(want.Revoked, report.Past(status).Revoked); diff != "" {
		t.Errorf("revoked (-want +got):\n%s", diff)
	}
}
