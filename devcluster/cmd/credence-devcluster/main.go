// Command credence-devcluster runs a real Kubernetes control plane on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/credence-id/credence/devcluster/internal/command"
)

func main() {
	if err := command.New(os.Stdout, os.Stderr).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "credence-devcluster:", err)
		if _, usage := errors.AsType[command.UsageError](err); usage {
			os.Exit(2)
		}
		os.Exit(1)
	}
}
