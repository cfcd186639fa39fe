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
	// others are further algorithms that it accepts, or can be set up to.
	others []identity.Algorithm
}

func table() []system {
	rs256, es256 := []identity.Algorithm{identity.RS256}, []identity.Algorithm{identity.ES256}
	return []system{
		{"alicloud", identity.RS256, nil},
		{"aws", identity.ES256, rs256},
		{"azure", identity.RS256, nil},
		{"gcp", identity.ES256, rs256},
		// For whatever has no row: a relying party that only verifies tokens.
		{"generic", identity.RS256, es256},
		// An API server that is configured by flags takes nothing else unless told to.
		{"kubernetes", identity.RS256, es256},
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

// Accepted returns all algorithms that a target system accepts, the cheapest first. Which of them a token has is chosen by
// an external signer alone; a ring signs with the first.
func Accepted(targetType string) []identity.Algorithm {
	for _, s := range table() {
		if s.name == targetType {
			return append([]identity.Algorithm{s.algorithm}, s.others...)
		}
	}
	return []identity.Algorithm{identity.RS256}
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
