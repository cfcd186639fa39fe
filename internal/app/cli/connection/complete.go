package connection

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/cluster"
)

// completionTimeout is how long a user who pressed the tab key is kept waiting.
const completionTimeout = 3 * time.Second

// CompleteNames completes the names of the objects that list returns, for the cluster and namespace of the command line.
func (c *Flags) CompleteNames(ctx context.Context, list func(*cluster.API, context.Context, string) ([]string, error), prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, c.CompletionTimeout)
	defer cancel()
	namespace, err := c.Namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	api, err := c.Open(io.Discard)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := list(api, ctx, namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for i, name := range names {
		names[i] = prefix + name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteArgument completes the one argument of a command by the names of the objects that list returns.
func (c *Flags) CompleteArgument(list func(*cluster.API, context.Context, string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.CompleteNames(cmd.Context(), list, "")
	}
}

// CompleteNamespaces completes the namespaces of the cluster.
func (c *Flags) CompleteNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.CompleteNames(cmd.Context(), (*cluster.API).NamespaceNames, "")
}

// CompleteKubeContexts completes the contexts of the kubeconfig.
func (c *Flags) CompleteKubeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Collect(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
