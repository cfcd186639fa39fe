package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// printUsage prints how a command is used. The flags that choose the cluster to talk to are the same for every command and
// would bury the few that matter, so they have their own command, as with kubectl.
func printUsage(cmd *cobra.Command) error {
	var text strings.Builder
	section := func(title, body string) { fmt.Fprintf(&text, "\n%s:\n%s\n", title, strings.TrimRight(body, "\n")) }

	section("Usage", "  "+cmd.UseLine())
	if cmd.HasExample() {
		section("Examples", strings.ReplaceAll(cmd.Example, "credence ", cmd.Root().DisplayName()+" "))
	}
	if cmd.HasAvailableSubCommands() {
		for _, group := range groupsOf(cmd) {
			var lines strings.Builder
			for _, sub := range group.commands {
				fmt.Fprintf(&lines, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
			section(group.title, lines.String())
		}
	}
	if flags := cmd.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		section("Flags", flags.FlagUsages())
	}
	if talksToCluster(cmd) {
		fmt.Fprintf(&text, "\nUse \"%s options\" for the flags that choose the cluster to talk to.\n", cmd.Root().DisplayName())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), strings.TrimPrefix(text.String(), "\n"))
	return err
}

// talksToCluster reports whether the flags that choose a cluster have an effect on a command, or on one below it.
func talksToCluster(cmd *cobra.Command) bool {
	return cmd.Annotations[connection.NeedsCluster] != "" || slices.ContainsFunc(cmd.Commands(), talksToCluster)
}

// commandGroup is a part of a list of commands.
type commandGroup struct {
	title    string
	names    []string
	commands []*cobra.Command
}

// groupsOf arranges the subcommands of a command: those of the root by what they are about.
func groupsOf(cmd *cobra.Command) []commandGroup {
	groups := []commandGroup{{title: "Commands"}}
	if !cmd.HasParent() {
		groups = []commandGroup{
			{title: "Identities and tokens", names: []string{"get", "explain", "renew", "doctor", "trust", "token", "identity", "cluster", "migrate"}},
			{title: "Keys and documents", names: []string{"backup", "keys", "discovery", "relying-party"}},
			{title: "Service accounts", names: []string{"enable", "account", "access", "profile", "drift"}},
			{title: "Accounts of Windows pods", names: []string{"gmsa"}},
			{title: "Credentials of clients", names: []string{"login", "logout", "whoami", "kubeconfig", "credential"}},
			{title: "A local installation, to try it out", names: []string{"up", "status", "down"}},
			{title: "Other commands"},
		}
	}
	last := len(groups) - 1
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		at := slices.IndexFunc(groups, func(g commandGroup) bool { return slices.Contains(g.names, sub.Name()) })
		if at < 0 {
			at = last
		}
		groups[at].commands = append(groups[at].commands, sub)
	}
	return slices.DeleteFunc(groups, func(g commandGroup) bool { return len(g.commands) == 0 })
}

func newOptionsCommand(terminal *screen.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Print the flags that choose the cluster to talk to",
		Args:  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(terminal.Out, "These flags can be given to any command that talks to a cluster:\n\n%s",
				cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return command.UnknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagFailure is a usage failure. A command that is not known has flags that are not known either.
func flagFailure(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return command.UnknownCommand(cmd, words[0])
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && invalid.GetFlag().Value.Type() == "duration" {
		return command.Usage(cmd, fmt.Sprintf("--%s is %q: give a time such as 90s, 15m or 24h; there is no unit for days", invalid.GetFlag().Name, invalid.GetValue()))
	}
	return command.Usage(cmd, err.Error())
}
