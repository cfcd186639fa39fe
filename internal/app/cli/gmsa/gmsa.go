package gmsa

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
)

// New is "gmsa".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gmsa COMMAND",
		Short: "Write, check and convert what lets Windows containers run as an account of Active Directory",
		Long: `Write, check and convert what lets Windows containers run as a group managed service
account (gMSA) of Active Directory. None of it needs Windows, PowerShell or a domain,
and nothing is applied: the commands read files and print; explain queries the cluster
too, if there is one.`,
	}
	cmd.AddCommand(newLint(terminal), newGenerate(terminal), newConvert(terminal), newExplain(terminal, kube), newInit(terminal))
	return command.Group(cmd)
}
