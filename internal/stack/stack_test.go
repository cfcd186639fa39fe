package stack_test

import (
	"testing"

	"github.com/credence-id/credence/internal/stack"
)

// On the heap the frame would cost more than the copies that it avoids.
func TestGrowAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, stack.Grow); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
