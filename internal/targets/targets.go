// Package targets is the list of target systems. In goes the type of one, out comes its adapter, that of generic for a type
// that is not known; or an identity, and out comes how a system is made to trust it; or an error, and out come the systems that
// it is of. It decides nothing itself.
package targets

import (
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/target/alicloud"
	"github.com/credence-id/credence/internal/target/aws"
	"github.com/credence-id/credence/internal/target/azure"
	"github.com/credence-id/credence/internal/target/gcp"
	"github.com/credence-id/credence/internal/target/generic"
	"github.com/credence-id/credence/internal/target/kubernetes"
	"github.com/credence-id/credence/internal/target/vault"
)

// systems are those that are known, in alphabetical order. One more is one more line.
var systems = []target.System{
	alicloud.System(),
	aws.System(),
	azure.System(),
	gcp.System(),
	generic.System(),
	kubernetes.System(),
	vault.System(),
}

// For returns the adapter of a type, that of generic where the type is not known.
func For(targetType string) target.Adapter {
	for i := range systems {
		if systems[i].Name == targetType && systems[i].Adapter != nil {
			return systems[i].Adapter
		}
	}
	return generic.Adapter{}
}

// Parties returns the systems whose limits for tokens of any issuer are documented.
func Parties() []target.Party {
	var parties []target.Party
	for _, system := range systems {
		if system.Party.Name != "" {
			parties = append(parties, system.Party)
		}
	}
	return parties
}

// Known reports whether the type has an adapter of its own.
func Known(targetType string) bool { return For(targetType).Type() == targetType }

// Types returns the types that are known, in alphabetical order.
func Types() []string {
	var types []string
	for _, system := range systems {
		if system.Adapter != nil {
			types = append(types, system.Name)
		}
	}
	return types
}

// Algorithm returns the algorithm that tokens for a type are signed with: the cheapest that the target system accepts.
func Algorithm(targetType string) identity.Algorithm { return Accepted(targetType)[0] }

// Accepted returns all algorithms that a target system accepts, the cheapest first. Which of them a token has is chosen by
// an external signer alone; a ring signs with the first.
func Accepted(targetType string) []identity.Algorithm {
	if !Known(targetType) {
		return []identity.Algorithm{identity.RS256}
	}
	return For(targetType).Limits().Algorithms
}
