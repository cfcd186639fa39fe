// Command credence is the command line of Credence, for people and for CI.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/up"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.New(streams, cli.Options{Program: os.Args[0]})
	root.AddCommand(up.NewCommands(streams)...)
	os.Exit(cli.Run(context.Background(), root, os.Args[1:]))
}
