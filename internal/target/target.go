// Package target is the one table of what target systems accept. In goes the type of a target system, out comes the
// signature algorithm of its tokens. It decides only: it never talks to a target system.
package target

import "github.com/credence-id/credence/internal/identity"

// Algorithm returns the cheapest algorithm that a target system is known to accept. RS256 is what every relying party
// takes; ES256 costs a twentieth of it, and is used only for targets that document it.
func Algorithm(targetType string) identity.Algorithm {
	switch targetType {
	case "aws", "gcp":
		return identity.ES256
	default:
		return identity.RS256
	}
}
