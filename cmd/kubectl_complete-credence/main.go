// Command kubectl_complete-credence completes the arguments of kubectl credence: kubectl runs it with what has been typed,
// and expects what cobra's own completion prints.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.New(streams, cli.Options{Program: "kubectl-credence"})
	os.Exit(cli.Run(context.Background(), root, append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)))
}
