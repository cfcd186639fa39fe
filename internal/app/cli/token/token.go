package token

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
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
