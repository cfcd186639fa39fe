package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	exitRefused = 1 // the server refuses, or the verification of a token fails; also every error of no other kind
	exitUsage   = 2 // the command line, or a file that it names, cannot be used
	exitOutage  = 3 // a server could not be reached or did not do its work, so nothing is known
)

// failure is the error of a command, in the words that the user sees.
type failure struct {
	line string // the whole line, with its "error: "; empty: the command has printed everything
	hint string // what to do about it; empty: nothing
	code int
	err  error // the cause, if there is one
}

func (f *failure) Error() string { return f.line }

func (f *failure) Unwrap() error { return f.err }

func usageFailure(cmd *cobra.Command, message string) *failure {
	return &failure{
		line: "error: " + message,
		hint: fmt.Sprintf("see %s --help", cmd.CommandPath()),
		code: exitUsage,
	}
}

// Run executes the command that the arguments name, prints its error, and returns the exit code of the program. Errors
// may choose their exit code by a method ExitCode() int.
func Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(keyIDsLast(root, args))
	wrongArgumentsAreUsage(root)
	err := root.ExecuteContext(ctx)
	if err != nil {
		printError(root.ErrOrStderr(), err)
	}
	return exitCode(err)
}

// wrongArgumentsAreUsage gives the argument checks of cmd and all below it, also those added by others, the exit code and
// the hint of a wrong usage.
func wrongArgumentsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, done := errors.AsType[*failure](err); err == nil || done {
				return err
			}
			return usageFailure(cmd, err.Error())
		}
	}
	for _, sub := range cmd.Commands() {
		wrongArgumentsAreUsage(sub)
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if failure, ok := errors.AsType[*failure](err); ok {
		return failure.code
	}
	var chosen interface{ ExitCode() int }
	if errors.As(err, &chosen) {
		return chosen.ExitCode()
	}
	return exitRefused
}

func printError(w io.Writer, err error) {
	line, hint := "error: "+err.Error(), ""
	if failure, ok := errors.AsType[*failure](err); ok {
		line, hint = failure.line, failure.hint
	}
	if line != "" {
		fmt.Fprintln(w, line)
	}
	if hint != "" {
		fmt.Fprintln(w, "hint: "+hint)
	}
}
