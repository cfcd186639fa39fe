package keys

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/wording"
)

// initialize is "keys initialize".
type initialize struct {
	ringChoice

	reason             string
	acceptLoss, dryRun bool
}

func newInitialize(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	i := &initialize{ringChoice: newRingChoice(terminal, kube)}
	cmd := &cobra.Command{
		Use:   "initialize --accept-loss --reason TEXT",
		Short: "Go on with an older ring of keys, or a new one, where the newest is lost",
		Long: `Let the issuer sign with the ring that is stored, although more is known of its past
than the ring knows: it was put back from a backup. Where no ring is stored, new keys
are made. Revoked keys stay revoked. Where the storage of the API server was lost
beside existing keys, this accepts that, too.

Put the newest backup back instead if there is one: tokens of keys that are lost are
refused from now on.

With --keys-dir nothing has to run: the API server, or credence-server signer, goes on
when it starts. The folder must exist.`,
		Example: `  credence keys initialize --reason "the backup of Monday was put back" --dry-run
  credence keys initialize --accept-loss --reason "the backup of Monday was put back"`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&i.reason, "reason", "", "Why; it is recorded (required)")
	flags.BoolVar(&i.acceptLoss, "accept-loss", false, "Accept that tokens of lost keys are refused (required)")
	command.DryRun(cmd, &i.dryRun, "Change nothing, only print what would come of it")
	i.addFlags(cmd)
	return cmd
}

func (i *initialize) run(cmd *cobra.Command) error {
	if strings.TrimSpace(i.reason) == "" {
		return command.Usage(cmd, "--reason is missing: it is kept in the history")
	}
	if !i.acceptLoss && !i.dryRun {
		return command.Usage(cmd, "--accept-loss is missing: tokens of keys that are lost are refused; see what is lost by --dry-run")
	}
	ring, api, err := i.open(cmd)
	if err != nil {
		return err
	}
	if directory, ok := ring.(directoryRing); ok {
		return i.inFolder(cmd.Context(), directory)
	}
	status, err := apiRing{Terminal: i.Terminal, api: api, program: cmd.Root().DisplayName()}.initialize(cmd.Context(), v1alpha1.KeyInitializationSpec{AcceptLoss: i.acceptLoss, Reason: i.reason}, i.dryRun)
	if err != nil {
		return err
	}
	lines := initialized(status, i.Now(), i.commands(cmd))
	if i.dryRun {
		lines = append([]string{dryRunLine}, lines...)
	}
	_, err = fmt.Fprintln(i.Out, strings.Join(lines, "\n"))
	return err
}

// initialized words what became of the keys. command returns what a user types to run another command on the same ring.
func initialized(status v1alpha1.KeyInitializationStatus, now time.Time, command func(name string) string) []string {
	lines := []string{"The stored keys are used."}
	if status.Made {
		lines = []string{"New keys were made."}
	}
	for _, id := range status.Lost {
		lines = append(lines, fmt.Sprintf("Lost: %s. Its tokens are refused.", wording.OneLine(id)))
	}
	for _, id := range status.Revoked {
		lines = append(lines, fmt.Sprintf("Revoked before, and stays so: %s.", wording.OneLine(id)))
	}
	for _, u := range status.Unsigned {
		algorithm := wording.OneLine(u.Algorithm)
		lines = append(lines,
			fmt.Sprintf("No %s key signs: %s.", algorithm, unsigned(u.NextKey, u.NextAt, now)),
			fmt.Sprintf("Its spare signs at once, and relying parties may refuse its tokens, by: %s", command(signAtOnce(algorithm))))
	}
	return lines
}

// inFolder records the consent in the ring itself: the program that knows its past goes on by it.
func (i *initialize) inFolder(ctx context.Context, ring directoryRing) error {
	made, err := ring.initialize(ctx, i.reason, i.dryRun)
	if err != nil {
		return directoryFailure("initialize the ring of keys", err)
	}
	line := "The stored keys are used when credence-server apiserver, or signer, starts again, within a day."
	if made {
		line = "New keys were made; they are used when credence-server apiserver, or signer, starts again, within a day."
	}
	if i.dryRun {
		line = dryRunLine + "\n" + line
	}
	_, err = fmt.Fprintln(i.Out, line)
	return err
}
