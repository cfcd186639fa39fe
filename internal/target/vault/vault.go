// Package vault is the JWT auth method of Vault and OpenBao, which verifies any token: there is no type of target system for it.
// In goes an identity, out comes what makes Vault trust it. It makes no requests.
package vault

import (
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// System is Vault: its trust and its errors. Identities for it are of the type generic.
func System() target.System {
	return target.System{
		Name:   "vault",
		Trust:  trust.Side{Any: true, Bearers: true, Commands: writeCommands, Terraform: writeTerraform, Provider: writeProvider},
		Errors: refusals,
	}
}
