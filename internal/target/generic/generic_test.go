package generic_test

import (
	"testing"

	"github.com/credence-id/credence/internal/target/generic"
	"github.com/credence-id/credence/internal/target/targettest"
)

func suite() targettest.Suite {
	return targettest.Suite{Adapter: generic.Adapter{}, Lax: true, Accepted: []string{`{"apiVersion":"a/v1","kind":"K"}`, `{}`}}
}

func TestSides(t *testing.T)       { targettest.Sides(t, generic.System(), suite().Accepted[0]) }
func TestConformance(t *testing.T) { targettest.Run(t, suite()) }
func FuzzConfig(f *testing.F)      { targettest.Fuzz(f, suite()) }
