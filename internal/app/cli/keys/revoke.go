package keys

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

// revoke is "keys revoke".
type revoke struct {
	ringChoice

	reason, caFile, output      string
	acceptRefusals, dryRun, yes bool
	wait                        time.Duration
}

func newRevoke(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	r := &revoke{ringChoice: newRingChoice(terminal, kube)}
	cmd := &cobra.Command{
		Use:   "revoke KID --reason TEXT",
		Short: "Stop trusting a key at once, because its private key may be known to others",
		Long: `Revoke the key KID: it is no longer published and no longer signs, and the spare
signs at once. The output has until when tokens of the key may still be accepted, and
by which relying parties, and which identities need new tokens. A revocation can not
be undone.

A spare that relying parties may not know yet does not sign: until it may, requests
for tokens are answered 503. With --accept-refusals it signs at once.

The command ends when the published documents no longer have the key. Exit code 1: they
still have it when the time of --wait is over; 3: whether they have it is not known.`,
		Example: `  credence keys revoke KID --reason "found in a backup" --dry-run
  credence keys revoke KID --reason "found in a backup"`,
		Args: command.ExactlyOne("the KID of a key, as credence keys list shows it"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.reason, "reason", "", "Why; it is recorded with the revocation (required)")
	flags.BoolVar(&r.acceptRefusals, "accept-refusals", false, "Let the spare sign at once, even if relying parties that do not know it refuse its tokens")
	command.DryRun(cmd, &r.dryRun, "Change nothing, only print what would come of it")
	flags.DurationVar(&r.wait, "wait", time.Minute, "How long to wait until the published documents are without the key; 0: do not look at them")
	flags.StringVar(&r.caFile, "ca-file", "", connection.CAFileHelp)
	flags.BoolVarP(&r.yes, "yes", "y", false, "Do not prompt for confirmation")
	r.addFlags(cmd)
	command.Output(cmd, &r.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.Annotations[takesKeyIDs] = "yes"
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.completeKeys(cmd, nil)
	}
	return cmd
}

func (r *revoke) run(cmd *cobra.Command, id string) error {
	if err := checkKeyID(cmd, id); err != nil {
		return err
	}
	if strings.TrimSpace(r.reason) == "" {
		return command.Usage(cmd, "--reason is missing: it is kept in the history")
	}
	if !r.dryRun && !r.yes && !screen.IsTerminal(r.In) {
		return command.Usage(cmd, "a revocation can not be undone, and standard input is not a terminal: confirm it by --yes, or preview it by --dry-run")
	}
	client, err := connection.DocumentsClient(cmd, r.caFile)
	if err != nil {
		return err
	}
	ring, api, err := r.open(cmd)
	if err != nil {
		return err
	}
	seen, err := ring.read(cmd.Context())
	if err != nil {
		return err
	}
	revocation := &revocation{
		seen: seen, command: r.commands(cmd), dryRun: true, inFolder: api == nil,
		spec: v1alpha1.KeyRevocationSpec{Key: id, Reason: r.reason, AcceptRefusals: r.acceptRefusals},
	}
	if err := revocation.try(cmd.Context(), ring); err != nil {
		return err
	}
	if !r.dryRun {
		if !r.yes {
			if err := r.confirm(revocation); err != nil {
				return err
			}
		}
		if revocation.status, err = ring.revoke(cmd.Context(), revocation.spec, false); err != nil {
			return revocation.refusal(err)
		}
		revocation.dryRun = false
	}
	print := r.Instead(r.output)
	if r.dryRun {
		if _, err := fmt.Fprintln(r.Out, dryRunLine); err != nil {
			return err
		}
	}
	if err := revocation.print(r.Out, r.Now()); err != nil {
		return err
	}
	renewals, err := r.printRenewals(cmd.Context(), api, revocation)
	if err != nil {
		return err
	}
	done := v1alpha1.KeyRevocation{TypeMeta: typeOf("KeyRevocation"), Spec: revocation.spec, Status: revocation.status}
	if err := print(map[string]any{"dryRun": r.dryRun, "revocation": done, "renew": renewals}); err != nil {
		return err
	}
	if r.dryRun || api == nil || r.wait <= 0 {
		return nil
	}
	return r.awaitWithdrawal(cmd.Context(), ring, client, id)
}

// confirm prompts for a confirmation, after it has shown the consequences.
func (r *revoke) confirm(revocation *revocation) error {
	if err := revocation.print(r.ErrOut, r.Now()); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(r.ErrOut, "\nThis can not be undone. Revoke key %s? Type yes: ", revocation.spec.Key); err != nil {
		return err
	}
	answer, err := bufio.NewReader(io.LimitReader(r.In, 64)).ReadString('\n')
	if strings.TrimSpace(answer) == "yes" && err == nil {
		return nil
	}
	return &command.Failure{Line: "error: not confirmed: nothing was done", Code: command.ExitRefused}
}

// checkKeyID refuses what can not be the ID of a key.
func checkKeyID(cmd *cobra.Command, id string) error {
	if keys.WellFormed(identity.KeyID(id)) {
		return nil
	}
	return command.Usage(cmd, fmt.Sprintf("%.64q is not the ID of a key: 43 characters of base64url, as %s keys list shows it", id, cmd.Root().DisplayName()))
}

// printRenewals names the identities whose tokens must be renewed. The revocation stands even if they can not be listed. It
// returns their namespace, name and target system.
func (r *revoke) printRenewals(ctx context.Context, api *cluster.API, revocation *revocation) ([][]string, error) {
	status := revocation.status
	if status.LastExpiry == nil {
		_, err := fmt.Fprintln(r.Out, "The key has never signed: no token has to be renewed.")
		return nil, err
	}
	if api == nil {
		_, err := fmt.Fprintf(r.Out, "Every client with a token of the key must get a new one. Service-account tokens in pods are renewed before they expire,\nand at once in a pod that is made anew.\n")
		return nil, err
	}
	stop := r.WaitingFor("the list of identities from the API server " + api.Host)
	names, err := identitiesSignedWith(ctx, api, identity.Algorithm(status.Algorithm))
	stop()
	if err != nil {
		_, err = fmt.Fprintf(r.Out, "The identities whose tokens must be renewed could not be listed (%s).\n%s\n", wording.OneLine(listFailure(err)), howToFindIdentities(status.Algorithm))
		return nil, err
	}
	if len(names) == 0 {
		_, err := fmt.Fprintf(r.Out, "No identity has a target system that takes %s: no token has to be renewed.\n", status.Algorithm)
		return nil, err
	}
	if _, err := fmt.Fprintf(r.Out, "Tokens of these identities are signed with %s, and must be renewed if they are older than this:\n", status.Algorithm); err != nil {
		return nil, err
	}
	rows := [][]string{{"  NAMESPACE", "NAME", "TARGET SYSTEM"}}
	for _, row := range names {
		rows = append(rows, append([]string{"  " + row[0]}, row[1:]...))
	}
	return names, screen.Table(r.Out, rows...)
}

func listFailure(err error) string {
	failed := apiFailure("", "list identities", err)
	return strings.TrimPrefix(failed.Line, "error: ")
}
