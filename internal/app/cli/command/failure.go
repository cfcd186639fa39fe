package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	ExitRefused     = 1 // the server refuses, or the verification of a token fails; also every error of no other kind
	ExitUsage       = 2 // the command line, or a file that it names, cannot be used
	ExitOutage      = 3 // a server could not be reached or did not do its work, so nothing is known
	ExitNeedsPerson = 4 // a person must log in, or approve something, and could not be reached
)

// Failure is the error of a command, in the words that the user sees.
type Failure struct {
	Line string // the whole line, with its "error: "; empty: the command has printed everything
	Hint string // what to do about it; empty: nothing
	Code int
	Err  error // the cause, if there is one
}

// Error implements error.
func (f *Failure) Error() string { return f.Line }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Usage is the failure of a wrong command line.
func Usage(cmd *cobra.Command, message string) *Failure {
	return &Failure{
		Line: "error: " + message,
		Hint: fmt.Sprintf("see %s --help", cmd.CommandPath()),
		Code: ExitUsage,
	}
}

// AsFailure returns the failure that an error is or wraps, or words the error as a refusal.
func AsFailure(err error) *Failure {
	if failed, ok := errors.AsType[*Failure](err); ok {
		return failed
	}
	return &Failure{Line: "error: " + err.Error(), Code: ExitRefused, Err: err}
}

// ExitCode is the exit code of the program for an error, or for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Code
	}
	var chosen interface{ ExitCode() int }
	if errors.As(err, &chosen) {
		return chosen.ExitCode()
	}
	return ExitRefused
}

// PrintError prints an error with its hint.
func PrintError(w io.Writer, err error) {
	line, hint := "error: "+err.Error(), ""
	if failure, ok := errors.AsType[*Failure](err); ok {
		line, hint = failure.Line, failure.Hint
	}
	if line != "" {
		fmt.Fprintln(w, line)
	}
	if hint != "" {
		fmt.Fprintln(w, "hint: "+hint)
	}
}
