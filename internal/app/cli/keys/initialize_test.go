package keys

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/api/identity/v1alpha1"
)

func TestInitializationInWords(t *testing.T) {
	status := v1alpha1.KeyInitializationStatus{
		Lost: []string{"first"}, Revoked: []string{"second"},
		Unsigned: []v1alpha1.UnsignedAlgorithm{{Algorithm: "ES256", NextKey: "third", NextAt: away(28 * time.Hour)}, {Algorithm: "RS256"}},
	}
	const want = `The stored keys are used.
Lost: first. Its tokens are refused.
Revoked before, and stays so: second.
No ES256 key signs: requests for such tokens are answered 503 until key third may sign, 2026-07-02T16:00:00Z (in 28h).
Its spare signs at once, and relying parties may refuse its tokens, by: credence keys rotate --algorithm ES256 --now --accept-refusals
No RS256 key signs: requests for such tokens are answered 503 until the published documents have shown a spare for long enough.
Its spare signs at once, and relying parties may refuse its tokens, by: credence keys rotate --algorithm RS256 --now --accept-refusals`
	command := func(name string) string { return "credence keys " + name }
	if diff := cmp.Diff(want, strings.Join(initialized(status, rotationTime(), command), "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}
