// Command credence-server holds the server components of Credence that have keys or rights in a cluster: one subcommand each.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/agent"
	"github.com/credence-id/credence/internal/app/apiserver"
	"github.com/credence-id/credence/internal/app/binder"
	"github.com/credence-id/credence/internal/app/certificates"
	"github.com/credence-id/credence/internal/app/controller"
	"github.com/credence-id/credence/internal/app/profiles"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/internal/app/signer"
	"github.com/credence-id/credence/internal/app/storage"
	"github.com/credence-id/credence/internal/app/webhook"
)

func main() {
	root := &cobra.Command{Use: "credence-server", Short: "The server components of Credence"}
	api, err := apiserver.NewCommand()
	if err != nil {
		fmt.Fprintln(os.Stderr, "credence-server:", err)
		os.Exit(1)
	}
	root.AddCommand(api, storage.NewCommand(), controller.NewCommand(), agent.NewCommand(), binder.NewCommand(), certificates.NewCommand(), profiles.NewCommand(), webhook.NewCommand(), signer.NewCommand())
	serving.Main(root)
}
