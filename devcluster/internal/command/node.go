package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/devcluster/internal/controlplane"
	"github.com/credence-id/credence/devcluster/internal/node"
	"github.com/credence-id/credence/devcluster/internal/state"
)

// loadImage is for users who want pods of a program of theirs.
func loadImage() *cobra.Command {
	command := onNode(&cobra.Command{
		Use:   "load-image --dir DIR NAME[:TAG] PROGRAM [ARGUMENT]...",
		Short: "Make a static program an image that the running node has",
		Long: `Makes an image that has one static Linux program in it, which is its entry
point, and gives it to the node of the cluster in DIR. No registry and no
builder is needed. Pods use it with imagePullPolicy: Never.

The arguments come before those that a pod gives. An image of the same name is
replaced; pods that run keep the old one.`,
		Example: `  credence-devcluster load-image --dir .credence/devcluster credence:dev bin/credence`,
		Args:    cobra.MinimumNArgs(2),
	}, func(cmd *cobra.Command, _, folder string, args []string) error {
		name, err := node.Load(cmd.Context(), folder, args[0], args[1], args[2:]...)
		if err != nil {
			return err
		}
		return printImages(cmd.OutOrStdout(), name)
	})
	// Words after the program are its arguments.
	command.Flags().SetInterspersed(false)
	return command
}

// importImages is for users who have images that they built.
func importImages() *cobra.Command {
	return onNode(&cobra.Command{
		Use:   "import-images --dir DIR ARCHIVE",
		Short: "Give the running node the images of an archive",
		Long: `Gives the node of the cluster in DIR the images of a tar archive, in the format
of the OCI or of docker save. Pods use them with imagePullPolicy: Never or
IfNotPresent.`,
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, _, folder string, args []string) error {
		names, err := node.Import(cmd.Context(), folder, args[0])
		if err != nil {
			return err
		}
		return printImages(cmd.OutOrStdout(), names...)
	})
}

func printImages(out io.Writer, names ...string) error {
	for _, name := range names {
		if _, err := fmt.Fprintf(out, "%s is an image of the node: use it with imagePullPolicy: Never\n", name); err != nil {
			return err
		}
	}
	return nil
}

// checkNode is for programs that start this one: they can refuse before anything runs.
func checkNode() *cobra.Command {
	return onNode(&cobra.Command{
		Use:    "check-node --dir DIR",
		Short:  "Say what is missing on this machine for --node",
		Hidden: true,
		Args:   cobra.NoArgs,
	}, func(_ *cobra.Command, _, folder string, _ []string) error {
		return node.Check(folder)
	})
}

// cleanNode is for programs that start this one, after it was killed.
func cleanNode() *cobra.Command {
	return onNode(&cobra.Command{
		Use:    "clean-node --dir DIR",
		Short:  "End what a cluster that was killed has left of its node",
		Hidden: true,
		Args:   cobra.NoArgs,
	}, func(cmd *cobra.Command, dir, folder string, _ []string) error {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		// A running cluster holds the directory, and is not to lose its pods.
		held, err := state.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(node.Clean(cmd.Context(), folder), held.Close())
	})
}

// onNode is a command for the node of the cluster in the folder that its flag --dir names.
func onNode(command *cobra.Command, run func(cmd *cobra.Command, dir, folder string, args []string) error) *cobra.Command {
	dir := command.Flags().String("dir", "", "directory of the cluster (required)")
	command.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := nodeFolder(*dir)
		if err != nil {
			return err
		}
		return run(cmd, *dir, folder, args)
	}
	return command
}

func nodeFolder(dir string) (string, error) {
	if dir == "" {
		return "", errNoDir
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find directory %s: %w", dir, err)
	}
	return controlplane.NodeFolder(absolute), nil
}
