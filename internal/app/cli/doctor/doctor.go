package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/discovery/comparison"
	"github.com/credence-id/credence/internal/doctor"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/wording"
)

// checkup is "doctor": it checks the whole way from the API to the mounted token, and explains errors of clouds.
type checkup struct {
	*screen.Terminal
	connection *connection.Flags

	output, identityKubeconfig, caFile, errorText string
}

// New is "doctor".
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	d := &checkup{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "doctor [IDENTITY]",
		Short: "Check the whole way from the API to the mounted token, and explain errors of clouds",
		Long: `Check the API and its clock, the webhooks and the agent, the roles and policies that
are installed beside those of this version, the issuer's documents as relying parties
see them, the keys, labels and annotations that have no effect, what target systems
take of each identity, and every Secret that carries a token: none expired, overdue, or
orphaned. With -n, only that namespace is looked at, and with IDENTITY only that one of
the namespace. Objects that you may not read are skipped, and so are checks of an API
that is not available. A warning does not change the exit code. Nothing is changed.

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
				return command.Usage(cmd, fmt.Sprintf("wanted is at most one argument, the name of an IDENTITY; there are %d", len(args)))
			}
			if len(args) == 1 {
				if err := cluster.CheckName(args[0]); err != nil {
					return command.Usage(cmd, err.Error())
				}
			}
			return nil
		},
		RunE:        func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	cmd.Flags().StringVar(&d.errorText, "error", "", "A code or a message of a cloud to explain, or - for standard input")
	cmd.Flags().StringVar(&d.caFile, "ca-file", "", connection.CAFileHelp)
	cmd.Flags().StringVar(&d.identityKubeconfig, "identity-kubeconfig", "", connection.IdentityKubeconfigHelp)
	command.Output(cmd, &d.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.ValidArgsFunction = kube.CompleteArgument((*cluster.API).IdentityNames)
	command.CompleteFlag(cmd, "error", cobra.NoFileCompletions)
	return cmd
}

func (d *checkup) run(cmd *cobra.Command, names []string) error {
	if cmd.Flags().Changed("error") {
		return d.explainError(cmd, names)
	}
	client, err := connection.DocumentsClient(cmd, d.caFile)
	if err != nil {
		return err
	}
	home, err := d.connection.Home(cmd)
	if err != nil {
		return err
	}
	both, err := d.connection.OpenBoth(d.ErrOut, d.identityKubeconfig)
	if err != nil {
		return err
	}
	where := doctor.Selection{Home: home, Names: names}
	if cmd.Flags().Changed("namespace") || len(names) > 0 {
		where.Namespace = home
	}
	files, err := deploy.Files()
	if err != nil {
		return err
	}
	var manifests []doctor.Manifest
	for _, file := range files {
		manifests = append(manifests, doctor.Manifest(file))
	}
	checks := doctor.Examination{Now: d.Now, Manifests: manifests, Client: client, OwnAuthorities: cmd.Flags().Changed("ca-file"), Resolve: func(ctx context.Context, host string) ([]net.IP, error) {
		return net.DefaultResolver.LookupIP(ctx, "ip", host)
	}, Shown: func(ctx context.Context, issuer identity.Issuer, client *http.Client) ([]identity.KeyID, error) {
		return (&comparison.Prober{Issuer: issuer, Client: client}).Probe(ctx)
	}}
	stop := d.WaitingFor("the checks")
	found := checks.Examine(cmd.Context(), both, where)
	stop()
	if err := d.print(found); err != nil {
		return err
	}
	switch {
	case found.Unreachable:
		return &command.Failure{Code: command.ExitOutage}
	case found.Count(doctor.Fail) > 0:
		return &command.Failure{Code: command.ExitRefused}
	}
	return nil
}

func (d *checkup) print(found *doctor.Diagnosis) error {
	if d.output != "text" {
		return screen.Object(d.Out, d.output, found)
	}
	width := 0
	for _, finding := range found.Findings {
		width = max(width, len(finding.Check))
	}
	var text strings.Builder
	for _, finding := range found.Findings {
		lines := d.folded(finding.Detail, width)
		if finding.Hint != "" {
			lines = append(lines, d.folded("→ "+finding.Hint, width)...)
		}
		fmt.Fprintf(&text, "%-7s  %-*s  %s\n", finding.Verdict, width, finding.Check, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&text, "%-7s  %-*s  %s\n", "", width, "", line)
		}
	}
	counts := found.Counts()
	fmt.Fprintf(&text, "%d passed, %d warned, %d failed, %d skipped\n", counts[doctor.Pass], counts[doctor.Warn], counts[doctor.Fail], counts[doctor.Skipped])
	_, err := io.WriteString(d.Out, wording.Printable(text.String()))
	return err
}

// folded is a text behind the columns of verdicts and checks: one line for a program, and as many as it takes at a terminal.
func (d *checkup) folded(text string, width int) []string {
	text = wording.OneLine(text)
	if !screen.IsTerminal(d.Out) {
		return []string{text}
	}
	return screen.Fold(text, max(screen.Columns-width-11, 40))
}
