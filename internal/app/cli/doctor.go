package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
)

// doctor is "doctor": it checks the whole way from the API to the mounted token, and explains errors of clouds.
type doctor struct {
	*terminal
	connection *connection
	// ownAuthorities is true if --ca-file names those of the issuer.
	ownAuthorities bool
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
relying parties see them, the keys, labels and annotations that have no effect, what
target systems take of each identity, and every Secret that carries a token: none
expired, overdue, or orphaned. With -n, only that namespace is looked at, and with
IDENTITY only that one of the namespace. Objects that you may not read are skipped, and so
are checks of an API that is not available. A warning does not change the exit
code. Nothing is changed.

Without --ca-file the issuer's certificate is checked with the authorities of this
machine, as clouds do with theirs; one that only the authority in the kubeconfig
vouches for is a warning.

With --error, nothing is checked: the error by which a cloud, a cluster or Vault
refused a token is explained, by its code or from a whole message. With IDENTITY,
the values to compare are those of the identity. - reads the message from standard
input.

Exit codes: 0 no check failed, or the error was explained; 1 a check failed, or
nothing is known of the error; 2 wrong usage; 3 the API server could not be reached,
so that nothing was checked.`,
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
	cmd.Flags().StringVarP(&d.output, "output", "o", "text", "What to print: text, json or yaml")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return connection.completeNames(cmd.Context(), (*api).workloadIdentityNames, "")
	}
	completeFlag(cmd, "error", cobra.NoFileCompletions)
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (d *doctor) run(cmd *cobra.Command, names []string) error {
	if err := oneOf(cmd, "output", d.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if cmd.Flags().Changed("error") {
		return d.explainError(cmd, names)
	}
	client, err := documentsClient(cmd, d.caFile)
	if err != nil {
		return err
	}
	d.ownAuthorities = cmd.Flags().Changed("ca-file")
	home, err := d.connection.home(cmd)
	if err != nil {
		return err
	}
	both, err := d.connection.openBoth(d.errOut, d.identityKubeconfig)
	if err != nil {
		return err
	}
	where := selection{home: home, names: names}
	if cmd.Flags().Changed("namespace") || len(names) > 0 {
		where.namespace = home
	}
	found := d.examine(cmd.Context(), both, where, client)
	if err := found.print(d.out, d.output); err != nil {
		return err
	}
	switch {
	case found.unreachable:
		return &failure{code: exitOutage}
	case found.count(verdictFail) > 0:
		return &failure{code: exitRefused}
	}
	return nil
}

// selection is where the doctor looks.
type selection struct {
	home      string // the namespace of the kubeconfig, or of -n
	namespace string // the only one to look at; empty: all
	names     []string
}

// examine makes the checks in the order of a token's way. Checks that depend on a failed one are skipped.
func (d *doctor) examine(ctx context.Context, both clusters, where selection, client *http.Client) *diagnosis {
	found := &diagnosis{}
	defer d.waitingFor("the checks")()
	if !d.checkReach(ctx, found, "api", both.workload) {
		return found
	}
	if both.identity != both.workload && !d.checkReach(ctx, found, "identity-api", both.identity) {
		return found
	}
	missing := checkAPIServices(ctx, found, both.identity)
	checkWebhooks(ctx, found, both.workload)
	d.checkAgent(ctx, found, both.workload)
	checkAnnotations(ctx, found, both.workload, where.namespace, where.home)
	var ring *identityv1alpha1.KeyRing
	var known *inventory
	const unavailable = "nothing can be checked while %s is not available"
	if group := identityv1alpha1.SchemeGroupVersion; slices.Contains(missing, group) {
		found.skip("keys", unavailable, group)
	} else {
		ring = d.checkKeys(ctx, found, both.identity)
	}
	if group := v1alpha1.SchemeGroupVersion; slices.Contains(missing, group) {
		found.skip("identities", unavailable, group)
		found.skip("tokens", unavailable, group)
	} else {
		known = d.checkIdentities(ctx, found, both, where)
	}
	d.checkIssuers(ctx, found, known, ring, client, both.identity.authorities)
	checkHost(ctx, found, both.identity, ring)
	if known != nil {
		d.checkTokens(found, known)
	}
	return found
}
