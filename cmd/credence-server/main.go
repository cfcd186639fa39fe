// Command credence-server holds the server components of Credence that have keys or rights in a cluster: one subcommand each.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/credence-id/credence/internal/app/agent"
	"github.com/credence-id/credence/internal/app/apiserver"
	"github.com/credence-id/credence/internal/app/binder"
	"github.com/credence-id/credence/internal/app/controller"
	"github.com/credence-id/credence/internal/app/signer"
	"github.com/credence-id/credence/internal/app/webhook"
	"github.com/spf13/cobra"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "credence-server:", err)
		os.Exit(1)
	}
}

func run() error {
	root := &cobra.Command{
		Use:           "credence-server",
		Short:         "The server components of Credence",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	api, err := apiserver.NewCommand()
	if err != nil {
		return err
	}
	root.AddCommand(api, controller.NewCommand(), agent.NewCommand(), binder.NewCommand(), webhook.NewCommand(), signer.NewCommand())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return root.ExecuteContext(ctx)
}
