package up

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var errNotSupported = errors.New("credence up is not supported on Windows: run it in WSL, or on Linux or macOS")

// NewCommands returns the commands up, down and status, which report that they do not work here.
func NewCommands(genericiooptions.IOStreams) []*cobra.Command {
	var commands []*cobra.Command
	for _, name := range []string{"up", "down", "status"} {
		commands = append(commands, &cobra.Command{
			Use:                name,
			Short:              "Not supported on Windows",
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, _ []string) error {
				cmd.SilenceUsage = true
				return errNotSupported
			},
		})
	}
	return commands
}
