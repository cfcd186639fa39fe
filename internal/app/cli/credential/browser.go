package credential

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
)

// browserVariable names the commands that open pages, in the order to try them.
const (
	browserVariable = "BROWSER"
	browserFlag     = "browser-command"
)

func addBrowserFlag(flags *pflag.FlagSet) {
	flags.String(browserFlag, "", "The command that opens the page of the login, with %s or the end for its address; default: those of $BROWSER, or the one of this machine")
}

// browsers returns the commands that the person chose to open pages by. A kubeconfig sets the arguments and the variables of what a client
// starts, so that neither counts there: its author would choose which program runs.
func browsers(cmd *cobra.Command, environment func(string) string) ([]string, error) {
	flag := cmd.Flags().Lookup(browserFlag)
	given := flag != nil && flag.Changed
	switch fromClient := environment(credential.EnvironmentVariable) != ""; {
	case fromClient && given:
		return nil, fmt.Errorf("--%s is for people: a kubeconfig must not choose which program a client runs", browserFlag)
	case fromClient:
		return nil, nil
	case given && strings.TrimSpace(flag.Value.String()) == "":
		return nil, fmt.Errorf("--%s is empty", browserFlag)
	case given:
		return []string{flag.Value.String()}, nil
	}
	var commands []string
	for _, command := range filepath.SplitList(environment(browserVariable)) {
		if strings.TrimSpace(command) != "" {
			commands = append(commands, command)
		}
	}
	return commands, nil
}

// openByOneOf starts the first of the commands that can be started.
func openByOneOf(commands []string, address string) error {
	var failed error
	for _, command := range commands {
		cmd, err := browserCommand(command, address)
		if err == nil {
			err = start(cmd)
		}
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// browserCommand returns the command that opens an address: a program, perhaps with arguments, divided at white space. No shell reads it.
func browserCommand(command, address string) (*exec.Cmd, error) {
	words := []string{command}
	if _, err := exec.LookPath(command); err != nil {
		// It is not a path with a space in it.
		words = strings.Fields(command)
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("open a browser: %w", err)
	}
	if end := strings.ToLower(filepath.Ext(program)); end == ".bat" || end == ".cmd" {
		return nil, fmt.Errorf("open a browser: %s is a batch file, which could take a part of the address for a command", program)
	}
	arguments, placed := words[1:], false
	for i, argument := range arguments {
		placed = placed || strings.Contains(argument, "%s")
		arguments[i] = strings.ReplaceAll(argument, "%s", address)
	}
	if !placed {
		arguments = append(arguments, address)
	}
	return exec.Command(program, arguments...), nil
}

// attended reports whether a person would notice that a login begins: at a terminal, by a browser, or because they chose how to log in.
func (s *source) attended(cmd *cobra.Command) bool {
	chosen, _ := browsers(cmd, os.Getenv) // serve returns the error
	return s.AtTerminal || len(chosen) > 0 || cmd.Flags().Changed("flow") || noBrowser(runtime.GOOS, os.Getenv) == nil
}
