package account

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/accounts"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// enable is "enable": it sets a namespace up.
type enable struct {
	*screen.Terminal
	connection *connection.Flags

	accountUse, agent, dryRun, output string
	makers, groups                    []string
	profiles, print                   bool
}

// NewEnable is "enable".
func NewEnable(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	e := &enable{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "enable NAMESPACE",
		Short: "Set a namespace up, so that its team can make accounts with workload identities",
		Long: `Set a namespace that exists up, so that its team can make service accounts with workload
identities: the label identity.credence.dev/workload-identities, with --account-use the
label by which users need the right to use an account, a RoleBinding that lets the agent
have tokens of the identities in the namespace, and one to ClusterRole
credence:accounts:maker for the users who make accounts. They may use every account and
identity of the namespace, and give that right to others.

Profiles are applied where the first label is. With --profiles the namespace gets the
label identity.credence.dev/profiles, too: kube-apiserver then guards them besides the
webhook, and to take that label off needs the verb manage-profiles on the namespace.

Labels and users that are there stay, and a second time changes nothing. You need to be
a cluster admin.`,
		Example: `  credence enable shop --account-use enforce --maker-group payments-leads

  # For Git
  credence enable shop --account-use enforce --maker jane@example.com --print`,
		Args:              command.ExactlyOne("the name of a namespace"),
		RunE:              func(cmd *cobra.Command, args []string) error { return e.run(cmd, args[0]) },
		ValidArgsFunction: kube.CompleteArgument((*cluster.API).NamespaceNames),
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.accountUse, "account-use", "", "The treatment of users who run pods without the right to use their account: audit, warn or enforce; without the flag, as it is")
	command.CompleteFlag(cmd, "account-use", cobra.FixedCompletions([]string{"audit", "warn", access.Enforce}, cobra.ShellCompDirectiveNoFileComp))
	flags.BoolVar(&e.profiles, "profiles", false, "Set the label of profiles, identity.credence.dev/profiles; without the flag, as it is")
	flags.StringArrayVar(&e.makers, "maker", nil, "A user who makes accounts; may be repeated")
	flags.StringArrayVar(&e.groups, "maker-group", nil, "A group whose users make accounts; may be repeated")
	flags.StringVar(&e.agent, "agent", rights.Agent().Name, "The user that the agent is, for one of another cluster")
	flags.BoolVar(&e.print, "print", false, "Print the objects as YAML, and talk to no cluster")
	objects.DryRunFlag(cmd, &e.dryRun)
	command.Output(cmd, &e.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

func (e *enable) run(cmd *cobra.Command, name string) error {
	if err := objects.CheckDryRun(cmd, e.dryRun); err != nil {
		return err
	}
	if cmd.Flags().Changed("account-use") {
		if err := command.OneOf(cmd, "account-use", e.accountUse, "audit", "warn", access.Enforce); err != nil {
			return err
		}
	}
	if err := (access.Account{Namespace: name, Name: access.All}).Check(); err != nil {
		return command.Usage(cmd, err.Error())
	}
	agent, err := subjects(cmd, []string{e.agent}, nil)
	if err != nil {
		return err
	}
	namespace := accounts.Namespace{Name: name, AccountUse: e.accountUse, Profiles: e.profiles, Agent: agent[0]}
	if namespace.Makers, err = subjects(cmd, e.makers, e.groups); err != nil {
		return err
	}
	stored := map[string]any{}
	all := []objects.Object{{
		At: cluster.Place{Resource: "namespaces", Name: name}, Kind: "namespace", MustExist: true,
		Content: namespace.Manifest(), Stored: &stored, Fit: func() (bool, error) { return namespace.SetLabels(stored), nil },
	}}
	for _, binding := range namespace.Bindings() {
		all = append(all, objects.Binding(binding))
	}
	if e.print {
		return objects.Print(e.Out, e.output, objects.Contents(all)) // as YAML, unless as JSON
	}
	return e.apply(cmd, name, all)
}

func (e *enable) apply(cmd *cobra.Command, name string, all []objects.Object) error {
	api, err := e.connection.Open(e.ErrOut)
	if err != nil {
		return err
	}
	writer := objects.Writer{API: api, DryRun: e.dryRun, Program: cmd.Root().DisplayName(),
		Hint: fmt.Sprintf("a cluster admin sets namespace %s up: run the command again with --print, and send an admin the objects", name)}
	stop := e.WaitingFor("the API server " + api.Host)
	err = writer.Apply(cmd.Context(), all)
	stop()
	if err != nil {
		return err
	}
	if e.output != "text" {
		return objects.Print(e.Out, e.output, objects.Contents(all))
	}
	_, err = io.WriteString(e.Out, writer.Lines(all))
	return err
}
