package target_test

import (
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
)

func TestAlgorithm(t *testing.T) {
	for targetType, want := range map[string]identity.Algorithm{
		"aws":        identity.ES256,
		"gcp":        identity.ES256,
		"azure":      identity.RS256,
		"alicloud":   identity.RS256,
		"kubernetes": identity.RS256,
		"generic":    identity.RS256,
		"unheard-of": identity.RS256,
		"":           identity.RS256,
		"AWS":        identity.RS256,
	} {
		if got := target.Algorithm(targetType); got != want {
			t.Errorf("Algorithm(%q) = %s, want %s", targetType, got, want)
		}
	}
}
