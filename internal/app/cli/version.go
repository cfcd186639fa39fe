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
			if output != "text" {
				return screen.Object(terminal.Out, output, version.Read())
			}
			_, err := fmt.Fprintln(terminal.Out, "credence", version.Read())
			return err
		},
	}
	command.Output(cmd, &output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}
