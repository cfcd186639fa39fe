// Command credence-node is the part of Credence on each node of a cluster.
package main

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/node"
	"github.com/credence-id/credence/internal/app/serving"
)

func main() {
	root := &cobra.Command{Use: "credence-node", Short: "The part of Credence on each node of a cluster"}
	root.AddCommand(node.NewCSICommand(), node.NewGuardCommand())
	serving.Main(root)
}
