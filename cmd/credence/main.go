// Command credence is the command line of Credence, for people and for CI. Under the names kubectl-credence and
// kubectl_complete-credence, which are links to it, it is a plugin of kubectl and what completes that plugin's arguments.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/up"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	program, args := os.Args[0], os.Args[1:]
	// kubectl runs kubectl_complete-credence with what has been typed, and expects what cobra's own completion prints.
	if strings.HasPrefix(filepath.Base(program), "kubectl_complete-") {
		program, args = "kubectl-credence", append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	root := cli.New(streams, cli.Options{Program: program})
	// The plugin has what works on the cluster of kubectl. A cluster on this machine is started under the program's own name.
	if !strings.HasPrefix(filepath.Base(program), "kubectl-") {
		root.AddCommand(up.NewCommands(streams)...)
	}
	os.Exit(cli.Run(context.Background(), root, args))
}
