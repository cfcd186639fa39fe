package guard

import (
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// Without a file verdicts are kept until the guard ends.
func TestVerdictsInMemory(t *testing.T) {
	v := testkit.Need(readVerdicts(""))(t)
	live := func() ([]string, error) { return []string{"pod"}, nil }
	testkit.Expect(t, v.keep("pod", []string{"main"}, live))
	if !v.has("pod", "main") || v.has("pod", "debug") {
		t.Errorf("verdicts of %v, want those of main alone", v.pods)
	}
}
