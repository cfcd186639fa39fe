// Package trust is the other side of an identity: the configuration by which a target system accepts the identity's tokens.
// In goes an identity with its issuer, subject, audiences and providerConfig, out comes a text for a person to read and run:
// commands for a POSIX shell, or Terraform. It names the exact subject, never a pattern; no value of the identity can leave
// its quotes. It makes no requests, and runs nothing.
package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Identity has the fields of a WorkloadIdentity that the other side needs.
type Identity struct {
	Namespace, Name string
	// Type is spec.targetSystem.type.
	Type string
	// Issuer and Subject are those of the status: the claims iss and sub, byte for byte.
	Issuer, Subject string
	// Audiences are the aud claim.
	Audiences []string
	// ProviderConfig is the JSON of spec.targetSystem.providerConfig, or nil.
	ProviderConfig []byte
}

// Form is how the other side is written.
type Form string

// The forms.
const (
	Commands  Form = "commands"
	Terraform Form = "terraform"
	// Provider is Terraform, too: the part that all identities of the issuer share. Terraform has the rest.
	Provider Form = "provider"
)

// Forms returns the forms, the default first.
func Forms() []Form { return []Form{Commands, Terraform, Provider} }

// side is one system that can be configured to trust an identity.
type side struct {
	name string
	// foreign reports whether identities of a type without a system of its own may be trusted there.
	foreign             bool
	commands, terraform func(Identity) (string, error)
	// provider is nil where identities share nothing.
	provider func(Identity) (string, error)
}

func sides() []side {
	return []side{
		{name: "alicloud", commands: alicloudCommands, terraform: alicloudTerraform, provider: alicloudProvider},
		{name: "aws", commands: awsCommands, terraform: awsTerraform, provider: awsProvider},
		{name: "azure", commands: azureCommands, terraform: azureTerraform},
		{name: "gcp", commands: gcpCommands, terraform: gcpTerraform, provider: gcpProvider},
		{name: "kubernetes", foreign: true, commands: kubernetesCommands, terraform: kubernetesTerraform, provider: kubernetesProvider},
		{name: "vault", foreign: true, commands: vaultCommands, terraform: vaultTerraform, provider: vaultProvider},
	}
}

// Systems returns the systems that can be configured, in alphabetical order.
func Systems() []string {
	var names []string
	for _, side := range sides() {
		names = append(names, side.name)
	}
	return names
}

// ForType returns the systems that may trust an identity of a type: its own, or those that verify any token.
func ForType(targetType string) []string {
	if slices.Contains(Systems(), targetType) {
		return []string{targetType}
	}
	var names []string
	for _, side := range sides() {
		if side.foreign {
			names = append(names, side.name)
		}
	}
	return names
}

// Write returns the configuration by which a system trusts the identity, or an error with the fault of the identity. With the form
// Provider, others are more identities that share it: it has the audiences of them all.
func Write(system string, form Form, identity Identity, others ...Identity) (string, error) {
	if err := identity.accepted(system); err != nil {
		return "", err
	}
	all := sides()
	side := all[slices.IndexFunc(all, func(s side) bool { return s.name == system })]
	title, write := fmt.Sprintf("Lets %s trust WorkloadIdentity %s/%s.", system, identity.Namespace, identity.Name), side.commands
	switch form {
	case Terraform:
		write = side.terraform
	case Provider:
		if write = side.provider; write == nil {
			return "", fmt.Errorf("%s has nothing that the identities of an issuer share: the resources of an identity are all that there is", system)
		}
		names, err := side.share(&identity, others)
		if err != nil {
			return "", err
		}
		title = fmt.Sprintf("The part of %s for all identities of the issuer; client IDs and audiences are those of\n# %s: add those of others.", system, strings.Join(names, ", "))
	}
	text, err := write(identity)
	if err != nil {
		return "", err
	}
	return header(title, system, identity) + text, nil
}

// accepted returns what of an identity stands against trusting it.
func (i Identity) accepted(system string) error {
	if !slices.Contains(ForType(i.Type), system) {
		return fmt.Errorf("the identity is of type %s, and its tokens are signed and addressed for that: %s can't be configured to trust it, only %s can",
			i.Type, system, strings.Join(ForType(i.Type), " or "))
	}
	return errors.Join(i.check(), i.checkConfig())
}

// share gives an identity the audiences of others, too, and returns the names of all. An error is another provider than the identity's.
func (s side) share(identity *Identity, others []Identity) ([]string, error) {
	all := append([]Identity{*identity}, others...)
	var audiences, names []string
	for _, i := range all {
		name := i.Namespace + "/" + i.Name
		if err := i.accepted(s.name); err != nil {
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
	want, err := s.provider(*identity)
	if err != nil {
		return nil, err
	}
	for n, other := range others {
		other.Audiences = audiences
		got, err := s.provider(other)
		if err != nil {
			return nil, fmt.Errorf("WorkloadIdentity %s: %w", names[n+1], err)
		}
		if got != want {
			return nil, fmt.Errorf("WorkloadIdentities %s and %s have different providers: print each with the identities that share it", names[0], names[n+1])
		}
	}
	return names, nil
}

func header(title, system string, identity Identity) string {
	text := "# " + title + "\n"
	if remark := reach(identity.Issuer); remark != "" && system != "kubernetes" && system != "vault" {
		text += "# " + remark + "\n"
	}
	return text + "\n"
}

// check refuses identities that no system should trust.
func (i Identity) check() error {
	if i.Issuer == "" || i.Subject == "" {
		return errors.New("its status has no issuer or no sub, so that it is not known what to trust: see whether Credence's API server runs")
	}
	if len(i.Audiences) == 0 {
		return errors.New("it has no audience in spec.audiences, and a system that does not check the audience accepts tokens meant for others")
	}
	address, err := url.Parse(i.Issuer)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("its issuer %q is not an https URL", i.Issuer)
	}
	for what, values := range map[string][]string{"issuer": {i.Issuer}, "subject": {i.Subject}, "name": {i.Namespace, i.Name}, "audience": i.Audiences} {
		for _, value := range values {
			if r, ok := invisible(value); ok {
				return fmt.Errorf("its %s %q holds a character that does not show (%U): the pasted text would differ from the shown one", what, value, r)
			}
		}
	}
	if strings.ContainsAny(i.Subject, "*?") {
		return fmt.Errorf("its subject %q holds a wildcard", i.Subject)
	}
	return nil
}

// invisible finds a character that a terminal does not show as itself.
func invisible(s string) (rune, bool) {
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return r, true
		}
	}
	return 0, false
}

// reach warns of issuers that no cloud could fetch keys from.
func reach(issuer string) string {
	address, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	host := address.Hostname()
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()), host == "localhost", strings.HasSuffix(host, ".localhost"), strings.HasSuffix(host, ".local"), strings.HasSuffix(host, ".svc"), strings.HasSuffix(host, ".internal"):
		return "The issuer " + address.Host + " can't be reached from the internet: a cloud can't fetch its keys, and refuses its tokens."
	case address.Port() != "":
		return "The issuer names port " + address.Port() + ": clouds fetch keys from port 443 alone, AWS takes no issuer with a port."
	}
	return ""
}

// label is a name for what is created on the other side, of letters, digits, - and _; no two identities share it, as names
// of Kubernetes have no underscore and namespaces have no dot.
func (i Identity) label() string {
	return strings.ReplaceAll(i.Namespace+"_"+i.Name, ".", "_")
}
