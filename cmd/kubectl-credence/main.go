// Command kubectl-credence is the command line of Credence as a kubectl plugin: kubectl credence ... It has what works on
// the cluster that kubectl talks to; a cluster on this machine is started by the program credence.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.New(streams, cli.Options{Program: os.Args[0]})
	os.Exit(cli.Run(context.Background(), root, os.Args[1:]))
}
