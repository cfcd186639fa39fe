package keys

import (
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
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

// rotate is "keys rotate".
type rotate struct {
	ringChoice

	algorithm, reason, output   string
	now, acceptRefusals, dryRun bool
}

func newRotate(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	r := &rotate{ringChoice: newRingChoice(terminal, kube)}
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Let the spare keys sign, as soon as every relying party can know them",
		Long: `Request a rotation: the spare signs as soon as every relying party can know it, and
the key that signs now stays published until the last token of it has expired. No
valid token is refused.

With --now the spare signs at once. For each model of relying parties it is printed
for how long they could refuse valid tokens; if any could, nothing is done without
--accept-refusals. Of several algorithms all are rotated or none.`,
		Example: `  credence keys rotate --reason "monthly rotation"

  # What would it cost to do it at once?
  credence keys rotate --now --accept-refusals --dry-run`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&r.algorithm, "algorithm", "", "Rotate the key of this algorithm only: RS256 or ES256; default: both")
	flags.BoolVar(&r.now, "now", false, "Let the spare sign at once")
	flags.BoolVar(&r.acceptRefusals, "accept-refusals", false, "With --now: do so even if relying parties that do not know the spare refuse its tokens")
	flags.StringVar(&r.reason, "reason", "", "Why; it is recorded in the history of the keys")
	command.DryRun(cmd, &r.dryRun, "Change nothing, only print what would come of it")
	r.addFlags(cmd)
	command.Output(cmd, &r.output, "What to print: text, json or yaml", "text", "json", "yaml")
	command.CompleteFlag(cmd, "algorithm", cobra.FixedCompletions(algorithmNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (r *rotate) run(cmd *cobra.Command) error {
	algorithms := algorithmNames()
	if cmd.Flags().Changed("algorithm") {
		if err := command.OneOf(cmd, "algorithm", r.algorithm, algorithms...); err != nil {
			return err
		}
		algorithms = []string{r.algorithm}
	}
	if r.acceptRefusals && !r.now {
		return command.Usage(cmd, "--accept-refusals has no effect without --now: a rotation that waits for the spare causes no refusals")
	}
	ring, _, err := r.open(cmd)
	if err != nil {
		return err
	}
	seen, err := ring.read(cmd.Context())
	if err != nil {
		return err
	}
	var all []*rotation
	for _, algorithm := range algorithms {
		all = append(all, &rotation{seen: seen, command: r.commands(cmd), spec: v1alpha1.KeyRotationSpec{
			Algorithm: algorithm, ActiveKey: activeKey(seen, algorithm), Now: r.now, AcceptRefusals: r.acceptRefusals, Reason: r.reason,
		}})
	}
	print := r.Instead(r.output)
	refusal := r.rotate(cmd.Context(), ring, all) // what it would cost is part of the status
	rotations := []v1alpha1.KeyRotation{}
	for _, rotation := range all {
		rotations = append(rotations, v1alpha1.KeyRotation{TypeMeta: typeOf("KeyRotation"), Spec: rotation.spec, Status: rotation.status})
	}
	if err := print(map[string]any{"dryRun": r.dryRun, "refused": refusal != nil, "rotations": rotations}); err != nil {
		return err
	}
	return refusal
}

func (r *rotate) rotate(ctx context.Context, ring keyRing, all []*rotation) error {
	if r.dryRun {
		if _, err := fmt.Fprintln(r.Out, dryRunLine); err != nil {
			return err
		}
	}
	if err := r.try(ctx, ring, all); err != nil {
		return err
	}
	for i, rotation := range all {
		if !r.dryRun {
			var err error
			if rotation.status, err = ring.rotate(ctx, rotation.spec, false); err != nil {
				failed := rotation.refusal(err, r.Terminal.Now())
				if i > 0 {
					failed.Line += fmt.Sprintf("\nThe %s key was rotated all the same", all[0].spec.Algorithm)
				}
				return failed
			}
		}
		if err := rotation.print(r.Out, r.Terminal.Now(), r.dryRun); err != nil {
			return err
		}
	}
	return nil
}

const dryRunLine = "DRY RUN: nothing was changed; this is what would come of it."

// try finds out what would come of the rotations, and prints what they would cost. The error names all that would be
// refused.
func (r *rotate) try(ctx context.Context, ring keyRing, all []*rotation) error {
	var refused *command.Failure
	for _, rotation := range all {
		spec := rotation.spec
		// The cost is known only once it is accepted.
		spec.AcceptRefusals = r.now
		var err error
		rotation.status, err = ring.rotate(ctx, spec, true)
		if err == nil && r.now {
			if err := rotation.printCost(r.Out); err != nil {
				return err
			}
		}
		if err == nil && spec.AcceptRefusals != rotation.spec.AcceptRefusals {
			_, err = ring.rotate(ctx, rotation.spec, true)
		}
		if err == nil {
			continue
		}
		failed := rotation.refusal(err, r.Terminal.Now())
		switch {
		case refused == nil:
			refused = failed
		case failed.Code == command.ExitRefused:
			refused.Line += "\n" + failed.Line
			if failed.Hint != refused.Hint {
				refused.Hint += "\nhint: " + failed.Hint
			}
		}
	}
	if refused == nil {
		return nil
	}
	if refused.Code == command.ExitRefused && len(all) > 1 {
		refused.Line += "\nNo key was rotated"
	}
	return refused
}

// rotation is that of the key of one algorithm.
type rotation struct {
	spec    v1alpha1.KeyRotationSpec
	seen    *v1alpha1.KeyRing // before
	status  v1alpha1.KeyRotationStatus
	command func(name string) string // what a user types to run another command on the same ring
}

func (r *rotation) printCost(w io.Writer) error {
	if none(r.status.Refusals) {
		_, err := fmt.Fprintf(w, "%s: every relying party knows the spare %s: none refuses its tokens.\n", r.spec.Algorithm, wording.OneLine(r.status.ActiveKey))
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: from when the spare %s signs, its valid tokens can be refused:\n", r.spec.Algorithm, wording.OneLine(r.status.ActiveKey)); err != nil {
		return err
	}
	return printExposures(w, r.status.Refusals, refused)
}

// refusal words an error of the rotation, with from when it is possible and by which flag at once.
func (r *rotation) refusal(err error, now time.Time) *command.Failure {
	failed := command.AsFailure(err)
	switch refusedFor(err) {
	case keys.TooYoung:
		from := "as soon as the published documents have shown the spare for long enough"
		if spare, ok := keyOf(r.seen, r.status.ActiveKey); ok && spare.ReadyAt != nil {
			from = "from " + wording.Moment(spare.ReadyAt.UTC(), now)
		}
		failed.Hint = fmt.Sprintf("without refusals it is possible %s: without --now, %s does it then; --accept-refusals does it at once", from, r.command("rotate"))
	case keys.UnknownToGates:
		failed.Hint = fmt.Sprintf("give the key to those who do not know it, and acknowledge that by %s; --accept-refusals does not wait for them", r.command("acknowledge NAME"))
	case keys.TooManyKeys:
		failed.Hint = fmt.Sprintf("%s shows when a key is removed: without --now, %s waits for that", r.command("list"), r.command("rotate"))
	case keys.AlreadyDone:
		failed.Hint = fmt.Sprintf("another rotation came first, or the key was revoked: see %s and %s", r.command("list"), r.command("history"))
	}
	return failed
}

func (r *rotation) print(w io.Writer, now time.Time, dryRun bool) error {
	lines := r.requested(now)
	if r.spec.Now {
		lines = []string{fmt.Sprintf("%s: key %s signs now.", r.spec.Algorithm, r.status.ActiveKey)}
		if r.spec.ActiveKey != "" {
			lines = append(lines, fmt.Sprintf("  Key %s stays published until all that it has signed has expired.", r.spec.ActiveKey))
		}
		if dryRun {
			lines[0] = fmt.Sprintf("%s: key %s would sign.", r.spec.Algorithm, r.status.ActiveKey)
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, wording.OneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// requested describes a rotation that waits for its spare.
func (r *rotation) requested(now time.Time) []string {
	line := fmt.Sprintf("%s: key %s signs ", r.spec.Algorithm, r.status.NextKey)
	switch {
	case r.status.NextAt == nil:
		line += "as soon as the published documents have shown it for long enough; see " + r.command("list") + "."
	case r.status.NextAt.After(now):
		line += "from " + wording.Moment(r.status.NextAt.UTC(), now) + "."
	default:
		line += "as soon as the program that rotates the keys comes to it."
	}
	lines := []string{line}
	for _, change := range r.seen.Status.Next {
		if change.Key == r.status.NextKey && len(change.Awaits) > 0 {
			lines = append(lines, "  It awaits that these know it: "+strings.Join(change.Awaits, ", ")+".")
		}
	}
	for _, request := range r.seen.Status.Requests {
		if request.Algorithm == r.spec.Algorithm {
			lines = append(lines, fmt.Sprintf("  That was requested already by %s, %s.", request.By, wording.Instant(&request.Time, now, "")))
		}
	}
	return lines
}
