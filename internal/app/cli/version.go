package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/version"
)

func newVersionCommand(terminal *screen.Terminal) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.OneOf(cmd, "output", output, "text", "json", "yaml"); err != nil {
				return err
			}
			if output != "text" {
				return screen.Object(terminal.Out, output, version.Read())
			}
			_, err := fmt.Fprintln(terminal.Out, "credence", version.Read())
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "What to print: text, json or yaml")
	command.CompleteFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
