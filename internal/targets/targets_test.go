package targets_test

import (
	"slices"
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/targets"
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
		if got := targets.Algorithm(targetType); got != want {
			t.Errorf("Algorithm(%q) = %s, want %s", targetType, got, want)
		}
	}
}

func TestAccepted(t *testing.T) {
	both := []identity.Algorithm{identity.ES256, identity.RS256}
	for targetType, want := range map[string][]identity.Algorithm{
		"aws":        both,
		"gcp":        both,
		"azure":      {identity.RS256},
		"alicloud":   {identity.RS256},
		"kubernetes": {identity.RS256, identity.ES256},
		"generic":    {identity.RS256, identity.ES256},
		"unheard-of": {identity.RS256},
	} {
		if got := targets.Accepted(targetType); !slices.Equal(got, want) {
			t.Errorf("Accepted(%q) = %s, want %s", targetType, got, want)
		}
	}
	for _, targetType := range targets.Types() {
		if targets.Accepted(targetType)[0] != targets.Algorithm(targetType) {
			t.Errorf("%s: the first algorithm accepted is not the one that a ring signs with", targetType)
		}
	}
}
