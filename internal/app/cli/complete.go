package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a user who pressed the tab key is kept waiting.
const completionTimeout = 3 * time.Second

// completeNames completes the names of the objects that list returns, for the cluster and namespace of the command line.
func (c *connection) completeNames(ctx context.Context, list func(*api, context.Context, string) ([]string, error), prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	namespace, err := c.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	api, err := c.open(io.Discard)
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

func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		// The flag is not there or has a completion already: a mistake in this package.
		panic(err)
	}
}

func (c *connection) completeKubeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := c.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
