// Package target is the one table of what target systems accept. In goes the type of a target system, out comes the
// signature algorithm of its tokens. It decides only: it never talks to a target system.
package target

import (
	"slices"

	"github.com/credence-id/credence/internal/identity"
)

// system is a row of the table: the cheapest algorithm that a target system is known to accept. RS256 is what every
// relying party takes; ES256 costs a twentieth of it, and stands only where the target system documents it.
type system struct {
	name      string
	algorithm identity.Algorithm
}

func table() []system {
	return []system{
		{"alicloud", identity.RS256},
		{"aws", identity.ES256},
		{"azure", identity.RS256},
		{"gcp", identity.ES256},
		// For whatever has no row: a relying party that only verifies tokens.
		{"generic", identity.RS256},
		// An API server that is configured by flags takes nothing else unless told to.
		{"kubernetes", identity.RS256},
	}
}

// Algorithm returns the algorithm that tokens for a target system are signed with: RS256 where the type is not known.
func Algorithm(targetType string) identity.Algorithm {
	for _, s := range table() {
		if s.name == targetType {
			return s.algorithm
		}
	}
	return identity.RS256
}

// Known says whether the table has a row for the type.
func Known(targetType string) bool { return slices.Contains(Types(), targetType) }

// Types returns the types that are known, in alphabetical order.
func Types() []string {
	var types []string
	for _, s := range table() {
		types = append(types, s.name)
	}
	return types
}
