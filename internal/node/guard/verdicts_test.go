package guard

import "testing"

// Without a file verdicts are kept until the guard ends.
func TestVerdictsInMemory(t *testing.T) {
	v, err := readVerdicts("")
	if err != nil {
		t.Fatal(err)
	}
	live := func() ([]string, error) { return []string{"pod"}, nil }
	if err := v.keep("pod", []string{"main"}, live); err != nil {
		t.Error(err)
	}
	if !v.has("pod", "main") || v.has("pod", "debug") {
		t.Errorf("verdicts of %v, want those of main alone", v.pods)
	}
}
