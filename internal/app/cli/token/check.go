package token

import (
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
)

// check is "token check": create and verify in one, without printing the token.
type check struct {
	create create
	verify verify
}

func newCheck(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &check{create: create{Terminal: terminal, connection: kube}, verify: verify{Terminal: terminal}}
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Create a token of a WorkloadIdentity, and verify it through its issuer's discovery documents",
		Long: `Create a token of the WorkloadIdentity NAME, and verify it as "credence token verify"
does. The token is not printed, so that this can run where others read the output,
such as in a pod.

Exit codes: 0 valid, 1 the request or the token was refused, 2 wrong usage, 3 a
server could not be reached, so that nothing is known.`,
		Example: `  credence token check my-app -n my-team --audience my-audience

  # In the cluster, before the name of the issuer leads anywhere
  credence token check my-app --connect credence-discovery.credence-system.svc --ca-file ca.crt`,
		Args:              command.ExactlyOne("the NAME of a WorkloadIdentity"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
		ValidArgsFunction: kube.CompleteArgument((*cluster.API).IdentityNames),
	}
	c.create.addFlags(cmd, kube)
	c.verify.addFlags(cmd)
	return cmd
}

func (c *check) run(cmd *cobra.Command, name string) error {
	options, err := c.verify.options(cmd)
	if err != nil {
		return err
	}
	answer, err := c.create.token(cmd, name)
	if err != nil {
		return err
	}
	return c.verify.judge(cmd, answer.Status.Token, options)
}
