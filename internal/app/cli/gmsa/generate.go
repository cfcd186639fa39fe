package gmsa

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	windowsv1 "github.com/credence-id/credence/api/windows/v1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/gmsa/generate"
	"github.com/credence-id/credence/internal/gmsa/lint"
	"github.com/credence-id/credence/internal/wording"
)

// generateCommand is "gmsa generate": it writes a GMSACredentialSpec, and who may use it.
type generateCommand struct {
	*screen.Terminal

	name, from              string
	facts                   generate.Facts
	plugin                  generate.Plugin
	additional, serviceUser []string
}

func newGenerate(terminal *screen.Terminal) *cobra.Command {
	g := &generateCommand{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "generate (--account NAME --domain DNSNAME --netbios-name NAME --domain-sid SID --domain-guid GUID | --from FILE)",
		Short: "Print the GMSACredentialSpec of an account, and who may use it",
		Long: `Print the GMSACredentialSpec of a group managed service account, from facts of its
domain. An administrator of the domain reads them in PowerShell:

  --account       (Get-ADServiceAccount NAME).Name
  --domain        (Get-ADDomain).DNSRoot
  --netbios-name  (Get-ADDomain).NetBIOSName
  --domain-sid    (Get-ADDomain).DomainSID.Value, not the SID of the account
  --domain-guid   (Get-ADDomain).ObjectGUID, not the GUID of the account
  --forest        (Get-ADDomain).Forest

Or with --from, take over the file that New-CredentialSpec wrote. Nodes that are not
joined to the domain need a plugin of the Container Credential Guard: --plugin-guid is
the GUID of its COM class, --plugin-input names a secret, and must not be one.

With --role-for, a ClusterRole is added that lets use this object and nothing else,
and a RoleBinding in the namespace of each service account.

The output is checked by the rules of gmsa lint: what can never work is an error
(exit code 2), warnings go to standard error.`,
		Example: `  credence gmsa generate --account WebApp1 --domain contoso.com --netbios-name CONTOSO \
    --domain-sid S-1-5-21-2126729477-2524075714-3094792973 \
    --domain-guid 244818ae-87ca-4fcd-92ec-e79e5252348a > webapp1.yaml

  # From the file of New-CredentialSpec, for a service account
  credence gmsa generate --from contoso_webapp1.json --role-for my-team/my-app | kubectl apply -f -`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.name, "name", "", "The name of the object; default: that of the account, in lower case")
	flags.StringVar(&g.from, "from", "", "A file that New-CredentialSpec wrote, or - for standard input, in place of the facts")
	flags.StringVar(&g.facts.Account, "account", "", "The name of the account")
	flags.StringVar(&g.facts.DNSName, "domain", "", "The DNS name of the account's domain")
	flags.StringVar(&g.facts.NetBIOSName, "netbios-name", "", "The NetBIOS name of the domain")
	flags.StringVar(&g.facts.SID, "domain-sid", "", "The SID of the domain")
	flags.StringVar(&g.facts.GUID, "domain-guid", "", "The GUID of the domain")
	flags.StringVar(&g.facts.Forest, "forest", "", "The DNS name of the forest; default: that of the domain, which is so unless it is a child of another")
	flags.StringArrayVar(&g.additional, "additional-account", nil, "A further account, as NAME, or NAME@DNSNAME for one of another domain; may be repeated")
	flags.StringVar(&g.plugin.GUID, "plugin-guid", "", "The GUID of the plugin, for nodes that are not joined to the domain")
	flags.StringVar(&g.plugin.Input, "plugin-input", "", "The input of the plugin, such as ObjectId=ID;SecretUri=URI for Azure Key Vault")
	flags.StringArrayVar(&g.serviceUser, "role-for", nil, "A service account that may use the object, as NAMESPACE/NAME; may be repeated")
	for _, flag := range []string{"name", "account", "domain", "netbios-name", "domain-sid", "domain-guid", "forest", "additional-account", "plugin-guid", "plugin-input", "role-for"} {
		command.CompleteFlag(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func (g *generateCommand) run(cmd *cobra.Command) error {
	accounts, err := g.roleFor(cmd)
	if err != nil {
		return err
	}
	credspec, err := g.credspec(cmd)
	if err != nil {
		return err
	}
	if err := g.judge(cmd, credspec); err != nil {
		return err
	}
	name, err := g.objectName(cmd, credspec, len(accounts) > 0)
	if err != nil {
		return err
	}
	object, err := generate.Object(name, credspec)
	if err != nil {
		return err
	}
	documents := []string{object}
	if len(accounts) > 0 {
		access, err := generate.Access(name, accounts)
		if err != nil {
			return err
		}
		documents = append(documents, access...)
	}
	_, err = io.WriteString(g.Out, strings.Join(documents, "---\n"))
	return err
}

func (g *generateCommand) roleFor(cmd *cobra.Command) ([]generate.ServiceAccount, error) {
	var accounts []generate.ServiceAccount
	for _, value := range g.serviceUser {
		namespace, name, _ := strings.Cut(value, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, command.Usage(cmd, fmt.Sprintf("--role-for is %q, and must be a namespace and the name of a service account of it, such as my-team/my-app", value))
		}
		accounts = append(accounts, generate.ServiceAccount{Namespace: namespace, Name: name})
	}
	return accounts, nil
}

// credspec is the credential spec as JSON, of the file or of the facts.
func (g *generateCommand) credspec(cmd *cobra.Command) ([]byte, error) {
	if cmd.Flags().Changed("from") {
		for _, flag := range g.factFlags() {
			if cmd.Flags().Changed(flag) {
				return nil, command.Usage(cmd, fmt.Sprintf("--%s has no effect with --from, whose file has all facts", flag))
			}
		}
		return g.fromFile(cmd)
	}
	if err := g.complete(cmd); err != nil {
		return nil, err
	}
	credspec, err := json.Marshal(generate.Spec(g.facts))
	if err != nil {
		return nil, fmt.Errorf("write the credential spec: %w", err)
	}
	return credspec, nil
}

func (g *generateCommand) factFlags() []string {
	return []string{"account", "domain", "netbios-name", "domain-sid", "domain-guid", "forest", "additional-account", "plugin-guid", "plugin-input"}
}

func (g *generateCommand) fromFile(cmd *cobra.Command) ([]byte, error) {
	text, err := command.ReadFile(g.In, g.from)
	if err != nil {
		return nil, command.Usage(cmd, "--from: "+err.Error())
	}
	text, _, err = utf8Text(text)
	if err != nil {
		return nil, command.Usage(cmd, fmt.Sprintf("--from: %s: %v", g.from, err))
	}
	if json.Valid(text) && !isBareJSON(text) && hasKey(text, "kind") {
		return nil, command.Usage(cmd, fmt.Sprintf("--from: %s is an object of Kubernetes, and no file of New-CredentialSpec: apply it as it is", g.from))
	}
	return text, nil
}

// complete checks that all facts are there, and joins the values of several flags.
func (g *generateCommand) complete(cmd *cobra.Command) error {
	var missing []string
	for _, need := range [][2]string{
		{"account", g.facts.Account}, {"domain", g.facts.DNSName}, {"netbios-name", g.facts.NetBIOSName},
		{"domain-sid", g.facts.SID}, {"domain-guid", g.facts.GUID},
	} {
		if need[1] == "" {
			missing = append(missing, "--"+need[0])
		}
	}
	if len(missing) > 0 {
		return command.Usage(cmd, fmt.Sprintf("missing or empty: %s; the help shows where an administrator of the domain finds them", strings.Join(missing, ", ")))
	}
	if cmd.Flags().Changed("forest") && g.facts.Forest == "" {
		return command.Usage(cmd, "--forest is empty")
	}
	if (g.plugin.GUID == "") != (g.plugin.Input == "") {
		return command.Usage(cmd, "--plugin-guid and --plugin-input belong together: give both, or none where the nodes are joined to the domain")
	}
	if g.plugin.GUID != "" {
		g.facts.Plugin = &g.plugin
	}
	for _, value := range g.additional {
		name, scope, other := strings.Cut(value, "@")
		if !other {
			scope = g.facts.DNSName
		}
		if name == "" || scope == "" {
			return command.Usage(cmd, fmt.Sprintf("--additional-account is %q, and must be NAME or NAME@DNSNAME", value))
		}
		g.facts.Additional = append(g.facts.Additional, windowsv1.GroupManagedServiceAccount{Name: name, Scope: scope})
	}
	return nil
}

// judge refuses what can never work, and prints warnings.
func (g *generateCommand) judge(cmd *cobra.Command, credspec []byte) error {
	var refused []string
	said := map[string]bool{}
	for _, finding := range lint.Check(credspec) {
		text := fmt.Sprintf("%s: %s; %s", g.source(credspec, finding), finding.Reason, finding.Fix)
		if said[text] { // the account stands in it several times
			continue
		}
		said[text] = true
		if finding.Refused {
			refused = append(refused, text)
			continue
		}
		fmt.Fprintln(g.ErrOut, "warning: "+wording.Printable(text))
	}
	if len(refused) > 0 {
		return command.Usage(cmd, wording.Printable(strings.Join(refused, "\nerror: ")))
	}
	return nil
}

// source is the flag, or the place in the file, that a finding is about.
func (g *generateCommand) source(credspec []byte, finding lint.Finding) string {
	if g.from != "" {
		at := placeOf(credspec, finding.Offset)
		return fmt.Sprintf("--from %s:%d:%d: %s", g.from, at.Line, at.Column, finding.Path)
	}
	const accounts = "credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts"
	for _, flag := range [][2]string{
		{"credspec.DomainJoinConfig.DnsName", "domain"},
		{"credspec.DomainJoinConfig.DnsTreeName", "forest"},
		{"credspec.DomainJoinConfig.NetBiosName", "netbios-name"},
		{"credspec.DomainJoinConfig.Sid", "domain-sid"},
		{"credspec.DomainJoinConfig.Guid", "domain-guid"},
		{"credspec.DomainJoinConfig.MachineAccountName", "account"},
		{accounts + "[0].Name", "account"}, {accounts + "[0].Scope", "domain"},
		{accounts + "[1].Name", "account"}, {accounts + "[1].Scope", "netbios-name"}, {accounts + "[1]", "netbios-name"},
		{accounts + "[", "additional-account"},
		{"credspec.ActiveDirectoryConfig.HostAccountConfig.PluginGUID", "plugin-guid"},
		{"credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput", "plugin-input"},
	} {
		if strings.HasPrefix(finding.Path, flag[0]) {
			return "--" + flag[1]
		}
	}
	return finding.Path
}

func (g *generateCommand) objectName(cmd *cobra.Command, credspec []byte, withRole bool) (string, error) {
	name := g.name
	if !cmd.Flags().Changed("name") {
		name = generate.ObjectName(accountOf(credspec))
		if name == "" {
			return "", command.Usage(cmd, "--name is missing: no name of an object can be made of that of the account")
		}
	}
	if reasons := validation.IsDNS1123Subdomain(name); len(reasons) > 0 {
		return "", command.Usage(cmd, fmt.Sprintf("--name: %q cannot be the name of an object: %s", name, reasons[0]))
	}
	if withRole && len(name)+len("-gmsa-user") > validation.DNS1123SubdomainMaxLength {
		return "", command.Usage(cmd, fmt.Sprintf("--name: %q is too long for a role that is named after it", name))
	}
	return name, nil
}

// accountOf is the container's own account. Keys count as they are written, which decoding into a type does not see.
func accountOf(credspec []byte) string {
	var spec map[string]any
	if json.Unmarshal(credspec, &spec) != nil {
		return ""
	}
	domain, _ := spec["DomainJoinConfig"].(map[string]any)
	account, _ := domain["MachineAccountName"].(string)
	return account
}
