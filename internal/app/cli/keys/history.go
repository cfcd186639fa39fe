package keys

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

func newHistory(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	choice := newRingChoice(terminal, kube)
	var output string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List what happened to the keys, who did it, and why",
		Long: `List what happened to the keys, the oldest first: who did it, and why. Revocations are
kept, the last thousand of them; of everything else the last 128 events are kept.`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ring, _, err := choice.open(cmd)
			if err != nil {
				return err
			}
			object, err := ring.read(cmd.Context())
			if err != nil {
				return err
			}
			events := history(object)
			if output != "table" {
				return screen.Object(terminal.Out, output, map[string]any{"history": events})
			}
			return printHistory(terminal.Out, events, terminal.Now())
		},
	}
	command.Output(cmd, &output, "What to print: table, json or yaml", "table", "json", "yaml")
	choice.addFlags(cmd)
	return cmd
}

// history is what is remembered, oldest first, with the revocations that the list of events has forgotten.
func history(ring *v1alpha1.KeyRing) []v1alpha1.KeyEvent {
	var all []v1alpha1.KeyEvent
	for _, gone := range ring.Status.Revoked {
		remembered := slices.ContainsFunc(ring.Status.History, func(e v1alpha1.KeyEvent) bool {
			return e.Event == string(keys.Revoked) && e.Key == gone.ID
		})
		if !remembered {
			all = append(all, v1alpha1.KeyEvent{
				Time: gone.Time, Event: string(keys.Revoked), Algorithm: gone.Algorithm, Key: gone.ID, By: gone.By, Reason: gone.Reason,
			})
		}
	}
	return append(all, ring.Status.History...)
}

func printHistory(w io.Writer, events []v1alpha1.KeyEvent, now time.Time) error {
	if len(events) == 0 {
		_, err := io.WriteString(w, "Nothing has happened to the keys since the first ones were made.\n")
		return err
	}
	rows := [][]string{{"TIME", "EVENT", "ALGORITHM", "KEY", "BY", "REASON"}}
	for _, event := range events {
		what := event.Event
		if event.AcceptRefusals {
			what += " (refusals accepted)"
		}
		rows = append(rows, []string{wording.Instant(&event.Time, now, "-"), what, event.Algorithm, event.Key, event.By, cmp.Or(event.Reason, "-")})
	}
	return screen.Table(w, rows...)
}
