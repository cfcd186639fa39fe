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
		Short:         "Make the release of a commit",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	var source, out string
	root.PersistentFlags().StringVar(&source, "source", ".", "the checkout that is built")
	root.PersistentFlags().StringVar(&out, "out", "bin/release", "the folder that is filled; what was there under the same names is replaced")

	var from, ofImages parameters
	images := &cobra.Command{
		Use:   "images",
		Short: "Build the images: an OCI layout, an archive of it, and an SBOM for each",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			scratch, err := os.MkdirTemp("", "credence-release-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(scratch)
			checkout, err := tagged(c.Context(), source, ofImages.Version, scratch)
			if err != nil {
				return err
			}
			return makeImages(c.Context(), c.OutOrStdout(), checkout, scratch, out, ofImages.Platforms)
		},
	}
	images.Flags().StringSliceVar(&ofImages.Platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms, OS/ARCHITECTURE")

	push := &cobra.Command{
		Use:   "push REGISTRY",
		Short: "Push the images that were built to a registry, with what refers to them",
		Long: `Push the images and the chart that were built to a registry, with SBOMs, signatures and provenance as referrers.

REGISTRY is a host with the path of the repositories, such as registry.example.com/credence.
Credentials are those of "docker login".`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return pushImages(c.Context(), c.OutOrStdout(), out, args[0])
		},
	}

	var key string
	release := &cobra.Command{
		Use:   "release",
		Short: "Build images, archives, chart, SBOMs, manifests of package managers, checksums and provenance, and sign them",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			signer, err := signerOf(key, from.Version)
			if err != nil {
				return err
			}
			return makeRelease(c.Context(), c.OutOrStdout(), source, out, from, signer)
		},
	}
	release.Flags().StringSliceVar(&from.Platforms, "platform", []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
	}, "platforms of the archives and, for Linux, of the images, OS/ARCHITECTURE")
	release.Flags().StringVar(&from.URL, "url", repository+"/releases/download", "where package managers find a folder for each version")
	release.Flags().StringVar(&key, "key", "", "a key of cosign generate-key-pair, with its password in COSIGN_PASSWORD; none: do not sign")

	for c, version := range map[*cobra.Command]*string{images: &ofImages.Version, release: &from.Version} {
		c.Flags().StringVar(version, "version", "", "the version of all that is built, such as v0.1.0 (default: that of the commit)")
	}

	rebuildCheck := &cobra.Command{
		Use:   "rebuild PROVENANCE",
		Short: "Build a release anew, and compare its digests with those of a provenance.json",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return rebuild(c.Context(), c.OutOrStdout(), source, args[0])
		},
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

	root.AddCommand(images, push, release, rebuildCheck, modules)
	return root
}
