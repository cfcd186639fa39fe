package execcredential

import "testing"

// Every situation has a step, and nothing is sent again that can't be, or without another credential.
func TestStepsAreComplete(t *testing.T) {
	for _, outcome := range []outcome{unsigned, unauthorized} {
		for _, repeatable := range []bool{true, false} {
			for _, other := range []bool{true, false} {
				step, known := steps[situation{outcome, repeatable, other}]
				if want := repeatable && other; !known || (step == again) != want {
					t.Errorf("outcome %d, repeatable %v, another credential %v: step %d, known %v", outcome, repeatable, other, step, known)
				}
				if step == nextSource && !repeatable {
					t.Errorf("outcome %d: another source is tried with a request that can't be sent again", outcome)
				}
			}
		}
	}
	if len(steps) != 8 {
		t.Errorf("%d situations, want 8", len(steps))
	}
}
