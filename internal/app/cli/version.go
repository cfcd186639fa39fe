package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/version"
)

func newVersionCommand(terminal *terminal) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "output", output, "text", "json", "yaml"); err != nil {
				return err
			}
			if output != "text" {
				return printObject(terminal.out, output, version.Read())
			}
			_, err := fmt.Fprintln(terminal.out, "credence", version.Read())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "What to print: text, json or yaml")
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
