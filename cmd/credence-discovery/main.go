// Command credence-discovery serves the public documents of an issuer. It is a program of its own so that what faces the
// world has no code that reads a key, and takes a fraction of the memory of credence-server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/credence-id/credence/internal/app/discovery"
)

func main() {
	command := discovery.NewCommand()
	command.SilenceErrors = true
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "credence-discovery:", err)
		os.Exit(1)
	}
}
