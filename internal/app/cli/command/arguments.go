package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ExactlyOne accepts one argument, which what describes.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage(cmd, fmt.Sprintf("wanted is one argument, %s; there are %d", what, len(args)))
		}
		if args[0] == "" {
			return Usage(cmd, fmt.Sprintf("wanted is one argument, %s; it is empty", what))
		}
		return nil
	}
}

// NoArguments accepts none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(cmd, fmt.Sprintf("no argument is wanted, there are %d", len(args)))
	}
	return nil
}

// OneOf returns a usage failure unless value is one of the allowed values of a flag.
func OneOf(cmd *cobra.Command, flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Usage(cmd, fmt.Sprintf("--%s is %q, allowed are %s", flag, value, strings.Join(allowed, ", ")))
}

// UnknownCommand is the failure of a name that no command has, with one that is near.
func UnknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	failure := Usage(cmd, fmt.Sprintf("unknown command %q of %q", name, cmd.CommandPath()))
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		failure.Hint = fmt.Sprintf("did you mean %q? %s", near[0], failure.Hint)
	}
	return failure
}

// Group makes cmd a command that only groups others: alone it prints its help, and an unknown subcommand is an error.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return UnknownCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.DisableFlagsInUseLine = true
	return cmd
}

// CompleteFlag sets the completion of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		// The flag is not there or has a completion already: a mistake in this package.
		panic(err)
	}
}

// Output adds the flag -o to a command: one of these values, the first if it is not given. Others are refused before the command runs.
func Output(cmd *cobra.Command, value *string, help string, allowed ...string) {
	cmd.Flags().StringVarP(value, "output", "o", allowed[0], help)
	CompleteFlag(cmd, "output", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return OneOf(cmd, "output", *value, allowed...) }
}

// DryRun adds the flag --dry-run to a command that talks to a server or a folder in each dry run: alone or "server", or "none".
func DryRun(cmd *cobra.Command, into *bool, help string) {
	cmd.Flags().Var((*dryRun)(into), "dry-run", help)
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	CompleteFlag(cmd, "dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

type dryRun bool

func (d *dryRun) String() string {
	if *d {
		return "server"
	}
	return "none"
}

func (d *dryRun) Set(value string) error {
	meaning, known := map[string]bool{"none": false, "false": false, "server": true, "true": true}[value]
	if !known {
		return errors.New("it must be server or none")
	}
	*d = dryRun(meaning)
	return nil
}

func (d *dryRun) Type() string { return "string" }
