package token

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// New is "token".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token COMMAND",
		Short: "Create, inspect and verify tokens",
	}
	cmd.AddCommand(newCreate(terminal, kube), newInspect(terminal), newVerify(terminal), newCheck(terminal, kube))
	return command.Group(cmd)
}

// completeIdentity completes the one argument NAME.
func completeIdentity(kube *connection.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kube.CompleteNames(cmd.Context(), (*cluster.API).IdentityNames, "")
	}
}
