package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/keys"
)

// Run executes the command that the arguments name, prints its error, and returns the exit code of the program. Errors
// may choose their exit code by a method ExitCode() int.
func Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(keys.IDsLast(root, args))
	wrongArgumentsAreUsage(root)
	err := root.ExecuteContext(ctx)
	if err != nil {
		command.PrintError(root.ErrOrStderr(), err)
	}
	return command.ExitCode(err)
}

// wrongArgumentsAreUsage gives the argument checks of cmd and all below it, also those added by others, the exit code and
// the hint of a wrong usage.
func wrongArgumentsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, done := errors.AsType[*command.Failure](err); err == nil || done {
				return err
			}
			return command.Usage(cmd, err.Error())
		}
	}
	for _, sub := range cmd.Commands() {
		wrongArgumentsAreUsage(sub)
	}
}
