package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/cobra"
)

// doctor is "doctor": it checks the whole way from the API to the mounted token, and explains errors of clouds.
type doctor struct {
	*terminal
	connection *connection
	// resolve looks up the addresses of a host.
	resolve func(ctx context.Context, host string) ([]net.IP, error)

	output, identityKubeconfig, caFile, errorText string
}

func newDoctorCommand(terminal *terminal, connection *connection) *cobra.Command {
	d := &doctor{terminal: terminal, connection: connection, resolve: func(ctx context.Context, host string) ([]net.IP, error) {
		return net.DefaultResolver.LookupIP(ctx, "ip", host)
	}}
	cmd := &cobra.Command{
		Use:   "doctor [IDENTITY]",
		Short: "Check the whole way from the API to the mounted token, and explain errors of clouds",
		Long: `Check the API and its clock, the webhooks and the agent, the issuer's documents as
relying parties see them, the keys, what target systems take of each identity, and
every Secret that carries a token: none expired, overdue, or orphaned. With
IDENTITY, only that one of the namespace is looked at. What you may not look at is
skipped. A warning does not change the exit code. Nothing is changed.

With --error, nothing is checked: the error by which a cloud, a cluster or Vault
refused a token is explained, by its code or from a whole message. With IDENTITY,
the values to compare are those of the identity. - reads the message from standard
input.

Exit codes: 0 no check failed, or the error was explained; 1 a check failed, or
nothing is known of the error; 2 wrong usage.`,
		Example: `  credence doctor
  credence doctor my-app -n my-team

  credence doctor my-app -n my-team --error AADSTS70021
  kubectl logs my-pod | credence doctor --error -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageFailure(cmd, fmt.Sprintf("wanted is at most one argument, the name of an IDENTITY; there are %d", len(args)))
			}
			if len(args) == 1 {
				if err := checkName(args[0]); err != nil {
					return usageFailure(cmd, err.Error())
				}
			}
			return nil
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
		Annotations: map[string]string{needsCluster: "yes"},
	}
	cmd.Flags().StringVar(&d.errorText, "error", "", "A code or a message of a cloud to explain, or - for standard input")
	cmd.Flags().StringVar(&d.caFile, "ca-file", "", caFileHelp)
	cmd.Flags().StringVar(&d.identityKubeconfig, "identity-kubeconfig", "", identityKubeconfigHelp)
	cmd.Flags().StringVarP(&d.output, "output", "o", "text", "What to print: text or json")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return connection.completeNames(cmd.Context(), (*api).workloadIdentityNames, "")
	}
	completeFlag(cmd, "error", cobra.NoFileCompletions)
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (d *doctor) run(cmd *cobra.Command, names []string) error {
	if err := oneOf(cmd, "output", d.output, "text", "json"); err != nil {
		return err
	}
	if cmd.Flags().Changed("error") {
		return d.explainError(cmd, names)
	}
	client, err := documentsClient(cmd, d.caFile)
	if err != nil {
		return err
	}
	home, err := d.connection.namespace()
	if err != nil {
		return err
	}
	both, err := d.connection.openBoth(d.errOut, d.identityKubeconfig)
	if err != nil {
		return err
	}
	found := d.examine(cmd.Context(), both, home, names, client)
	if err := found.print(d.out, d.output); err != nil {
		return err
	}
	if found.count(verdictFail) > 0 {
		return &failure{code: exitRefused}
	}
	return nil
}

// examine makes the checks in the order of a token's way.
func (d *doctor) examine(ctx context.Context, both clusters, home string, names []string, client *http.Client) *diagnosis {
	found := &diagnosis{}
	defer d.waitingFor("the checks")()
	if !d.checkReach(ctx, found, "api", both.workload) {
		return found
	}
	if both.identity != both.workload && !d.checkReach(ctx, found, "identity-api", both.identity) {
		return found
	}
	checkAPIServices(ctx, found, both.identity)
	checkWebhooks(ctx, found, both.workload)
	d.checkAgent(ctx, found, both.workload)
	ring := d.checkKeys(ctx, found, both.identity)
	known := d.checkIdentities(ctx, found, both, home, names)
	d.checkIssuers(ctx, found, known, ring, client)
	if known != nil {
		d.checkTokens(found, known)
	}
	return found
}
