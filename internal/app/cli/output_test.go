package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	printsManifest   = "it prints a manifest, to be applied as it is"
	changesSomething = "it changes something, and prints what it did"
	isProvider       = "it prints an ExecCredential, whose form is given"
)

// withoutOutput are the commands without -o, or groups of them, with the reason. All others print objects or findings, which programs read, too.
var withoutOutput = map[string]string{
	"access policy":                 printsManifest,
	"access suggest":                printsManifest,
	"backup restore":                changesSomething,
	"cluster join":                  changesSomething,
	"cluster leave":                 changesSomething,
	"completion":                    "it prints a script for a shell",
	"credential client-certificate": isProvider,
	"credential file":               isProvider,
	"credential in-order":           isProvider,
	"credential oidc":               isProvider,
	"credential token-exchange":     isProvider,
	"credential workload-identity":  isProvider,
	"gmsa convert":                  printsManifest,
	"gmsa generate":                 printsManifest,
	"gmsa init-container":           printsManifest,
	"identity release":              changesSomething,
	"keys initialize":               changesSomething,
	"keys probe":                    "it prints one token, as others take it",
	"kubeconfig":                    "it prints a kubeconfig",
	"login":                         changesSomething,
	"logout":                        changesSomething,
	"options":                       "it is help",
	"profile from-pods":             printsManifest,
	"profile harden":                printsManifest,
}

// Commands that print objects or findings have -o, with json and yaml. No reason outlives its command.
func TestCommandsHaveOutput(t *testing.T) {
	used := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		group, _, _ := strings.Cut(path, " ")
		if cmd.HasSubCommands() || cmd.Name() == "help" || cmd.Flag("output") != nil {
			return
		}
		if _, ok := withoutOutput[path]; ok {
			used[path] = true
		} else if _, ok := withoutOutput[group]; ok {
			used[group] = true
		} else {
			t.Errorf("credence %s has no flag -o: give it command.Output, or a reason here", path)
		}
	}
	walk(New(genericiooptions.NewTestIOStreamsDiscard(), Options{}))
	for name := range withoutOutput {
		if !used[name] {
			t.Errorf("credence %s has -o, or is no command: take its reason away", name)
		}
	}
}
