package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "release",
		Short:         "Make the images and archives of a commit",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var source, out string
	root.PersistentFlags().StringVar(&source, "source", ".", "the checkout that is built")
	root.PersistentFlags().StringVar(&out, "out", "bin/release", "the folder that is filled; what was there under the same names is replaced")

	var platforms []string
	var version string
	images := &cobra.Command{
		Use:   "images",
		Short: "Build the images: an OCI layout, an archive of it, and an SBOM for each",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return makeImages(c.Context(), c.OutOrStdout(), source, version, out, platforms)
		},
	}
	images.Flags().StringSliceVar(&platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms of the images, OS/ARCHITECTURE")

	push := &cobra.Command{
		Use:   "push REGISTRY",
		Short: "Push the images that were built to a registry, with their SBOMs",
		Long: `Push the images that were built to a registry, with their SBOMs as referrers.

REGISTRY is a host with the path of the repositories, such as registry.example.com/credence.
Credentials are those of "docker login".`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return pushImages(c.Context(), c.OutOrStdout(), out, args[0])
		},
	}

	archives := &cobra.Command{
		Use:   "archives",
		Short: "Build the archives of the client programs and of the kubelets' program, with SBOMs and checksums",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return makeArchives(c.Context(), c.OutOrStdout(), source, version, out, platforms)
		},
	}
	archives.Flags().StringSliceVar(&platforms, "platform", []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
	}, "platforms of the archives, OS/ARCHITECTURE")

	for _, c := range []*cobra.Command{images, archives} {
		c.Flags().StringVar(&version, "version", "", "the version of the programs, such as v0.1.0, with what is committed (default: that of the commit)")
	}

	var refused string
	modules := &cobra.Command{
		Use:   "modules",
		Short: "Hold the output of hack/modules.sh against refused and retracted versions",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := os.ReadFile(filepath.Join(source, refused))
			if err != nil {
				return err
			}
			list, err := parseRefused(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", refused, err)
			}
			return checkModules(c.InOrStdin(), list, source)
		},
	}
	modules.Flags().StringVar(&refused, "refused", "hack/refused.txt", "the list of refused versions, in the checkout")

	root.AddCommand(images, push, archives, modules)
	return root
}
