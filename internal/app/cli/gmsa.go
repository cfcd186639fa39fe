package cli

import "github.com/spf13/cobra"

func newGMSACommand(terminal *terminal, connection *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gmsa COMMAND",
		Short: "Write, check and convert what lets Windows containers run as an account of Active Directory",
		Long: `Write, check and convert what lets Windows containers run as a group managed service
account (gMSA) of Active Directory. None of it needs Windows, PowerShell or a domain,
and nothing is applied: the commands read files and print; explain queries the cluster
too, if there is one.`,
	}
	cmd.AddCommand(newGMSALintCommand(terminal), newGMSAGenerateCommand(terminal), newGMSAConvertCommand(terminal), newGMSAExplainCommand(terminal, connection), newGMSAInitCommand(terminal))
	return asGroup(cmd)
}
