// Command credence-devcluster runs a real Kubernetes control plane on this machine.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/credence-id/credence/devcluster/internal/command"
)

func main() {
	if err := command.New(os.Stdout, os.Stderr).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "credence-devcluster:", err)
		os.Exit(1)
	}
}
