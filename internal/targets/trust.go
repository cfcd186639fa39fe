package targets

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/trust"
)

// Trusting returns the systems that can be configured to trust an identity, in alphabetical order.
func Trusting() []string {
	var names []string
	for _, system := range systems {
		if system.Trust.Commands != nil {
			names = append(names, system.Name)
		}
	}
	return names
}

// TrustingType returns the systems that may trust an identity of a type: its own, or those that verify any token.
func TrustingType(targetType string) []string {
	if slices.Contains(Trusting(), targetType) {
		return []string{targetType}
	}
	var names []string
	for _, system := range systems {
		if system.Trust.Any {
			names = append(names, system.Name)
		}
	}
	return names
}

// KnowsBearers reports whether the configuration of the system can distinguish the clusters, service accounts and context objects that have tokens of one
// identity. It panics if the system is not one of Trusting.
func KnowsBearers(system string) bool { return sideOf(system).Bearers }

func sideOf(system string) trust.Side {
	return systems[slices.IndexFunc(systems, func(s target.System) bool { return s.Name == system })].Trust
}

// WriteTrust returns the configuration by which a system trusts the identity, or an error with the fault of the identity. With the
// form Provider, others are more identities that share it: it has the audiences of them all.
func WriteTrust(system string, form trust.Form, identity trust.Identity, others ...trust.Identity) (string, error) {
	if err := accepted(identity, system); err != nil {
		return "", err
	}
	side := sideOf(system)
	if identity.Bearer != (trust.Bearer{}) && !side.Bearers {
		return "", fmt.Errorf("%s is configured to know bearers of tokens by issuer, subject and audience alone, which do not distinguish clusters, service accounts or context objects: give %s an identity of its own", system, identity.Bearer)
	}
	title, write := fmt.Sprintf("Lets %s trust WorkloadIdentity %s/%s.", system, identity.Namespace, identity.Name), side.Commands
	switch form {
	case trust.Terraform:
		write = side.Terraform
	case trust.Provider:
		if write = side.Provider; write == nil {
			return "", fmt.Errorf("%s has nothing that the identities of an issuer share: the resources of an identity are all that there is", system)
		}
		names, err := share(system, side, &identity, others)
		if err != nil {
			return "", err
		}
		title = fmt.Sprintf("The part of %s for all identities of the issuer; client IDs and audiences are those of\n# %s: add those of others.", system, strings.Join(names, ", "))
	}
	text, err := write(identity)
	if err != nil {
		return "", err
	}
	header := "# " + title + "\n"
	if identity.Bearer != (trust.Bearer{}) {
		header += "# Of its tokens only those of " + identity.Bearer.String() + ".\n"
	}
	if remark := trust.Reach(identity.Issuer); remark != "" && !side.Any {
		header += "# " + remark + "\n"
	}
	return header + "\n" + text, nil
}

// accepted returns what of an identity stands against trusting it.
func accepted(i trust.Identity, system string) error {
	if able := TrustingType(i.Type); !slices.Contains(able, system) {
		return fmt.Errorf("the identity is of type %s, and its tokens are signed and addressed for that: %s can't be configured to trust it, only %s can",
			i.Type, system, strings.Join(able, " or "))
	}
	_, err := target.Check(For(i.Type), i.ProviderConfig)
	return errors.Join(i.Check(), err)
}

// share gives an identity the audiences of others, too, and returns the names of all. An error is another provider than the identity's.
func share(system string, side trust.Side, identity *trust.Identity, others []trust.Identity) ([]string, error) {
	all := append([]trust.Identity{*identity}, others...)
	var audiences, names []string
	for _, i := range all {
		name := i.Namespace + "/" + i.Name
		if err := accepted(i, system); err != nil {
			return nil, fmt.Errorf("WorkloadIdentity %s: %w", name, err)
		}
		names = append(names, name)
		for _, audience := range i.Audiences {
			if !slices.Contains(audiences, audience) {
				audiences = append(audiences, audience)
			}
		}
	}
	identity.Audiences = audiences
	want, err := side.Provider(*identity)
	if err != nil {
		return nil, err
	}
	for n, other := range others {
		other.Audiences = audiences
		got, err := side.Provider(other)
		if err != nil {
			return nil, fmt.Errorf("WorkloadIdentity %s: %w", names[n+1], err)
		}
		if got != want {
			return nil, fmt.Errorf("WorkloadIdentities %s and %s have different providers: print each with the identities that share it", names[0], names[n+1])
		}
	}
	return names, nil
}
