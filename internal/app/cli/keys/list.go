package keys

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/wording"
)

func newList(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	choice := newRingChoice(terminal, kube)
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the published keys, and what becomes of them next",
		Long: `List the keys that are published: which of them sign, since when, when the last
token of a key that signs no more expires, and what happens to each of them next.
Below the keys stands what keeps them from rotating, if anything does.

-o wide shows times in full. -o json and yaml print the whole KeyRing.`,
		Example: `  credence keys list

  # The keys of credence-server signer, on its machine
  credence keys list --keys-dir /var/lib/credence/service-accounts`,
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
			if output == "json" || output == "yaml" {
				object.ManagedFields = nil
				return screen.Object(terminal.Out, output, object)
			}
			return printKeys(terminal.Out, object, terminal.Now(), output == "wide")
		},
	}
	command.Output(cmd, &output, "What to print: table, wide, json or yaml", "table", "wide", "json", "yaml")
	choice.addFlags(cmd)
	return cmd
}

func printKeys(w io.Writer, ring *v1alpha1.KeyRing, now time.Time, wide bool) error {
	word := func(t *metav1.Time) string { return wording.Age(t, now) }
	if wide {
		word = func(t *metav1.Time) string { return wording.Instant(t, now, "-") }
	}
	header := []string{"KID", "ALGORITHM", "STATE", "PUBLISHED", "SIGNS SINCE", "LAST EXPIRY"}
	if wide {
		header = append(header, "READY", "RETIRED")
	}
	rows := [][]string{append(header, "NEXT CHANGE")}
	for _, key := range ring.Status.Keys {
		row := []string{key.ID, key.Algorithm, key.State, word(key.PublishedAt), word(key.SignsSince), word(key.LastExpiry)}
		if wide {
			row = append(row, word(key.ReadyAt), word(key.RetiredAt))
		}
		rows = append(rows, append(row, nextChange(ring, key, now)))
	}
	if err := screen.Table(w, rows...); err != nil {
		return err
	}
	for _, line := range remarks(ring, now) {
		if _, err := fmt.Fprintln(w, wording.OneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// nextChange returns what happens to a key next, when, and what that awaits.
func nextChange(ring *v1alpha1.KeyRing, key v1alpha1.KeyStatus, now time.Time) string {
	verbs := map[string]string{"Remove": "is removed", "Activate": "signs", "Rotate": "signs"}
	for _, change := range ring.Status.Next {
		verb := verbs[change.Change]
		if key.State == string(keys.Active) && change.Change == "Rotate" && change.Algorithm == key.Algorithm {
			verb = "retires"
		} else if change.Key != key.ID || verb == "" {
			continue
		}
		switch {
		case len(change.Awaits) > 0 && !change.Time.After(now):
			return fmt.Sprintf("%s once the spare is known to %s", verb, strings.Join(change.Awaits, ", "))
		case len(change.Awaits) > 0:
			return fmt.Sprintf("%s %s, if the spare is known to %s", verb, wording.Moment(change.Time.UTC(), now), strings.Join(change.Awaits, ", "))
		case !change.Time.After(now):
			return verb + " as soon as the program that rotates the keys comes to it"
		default:
			return verb + " " + wording.Moment(change.Time.UTC(), now)
		}
	}
	if key.State == string(keys.Spare) && key.PublishedAt == nil {
		return "is found in the published documents"
	}
	return "-"
}

// remarks are what the table of keys does not show: requests, and conditions that are not as they should be.
func remarks(ring *v1alpha1.KeyRing, now time.Time) []string {
	var lines []string
	for _, request := range ring.Status.Requests {
		line := fmt.Sprintf("rotation of the %s key was requested by %s, %s", request.Algorithm, request.By, wording.Instant(&request.Time, now, "-"))
		if request.Reason != "" {
			line += ": " + request.Reason
		}
		lines = append(lines, line)
	}
	lines = append(lines, full(ring, now)...)
	for _, party := range ring.Status.RelyingParties {
		if len(party.MissingKeys) > 0 {
			lines = append(lines, fmt.Sprintf("relying party %s has not been given: %s", party.Name, strings.Join(party.MissingKeys, ", ")))
		}
	}
	if documents := ring.Status.Documents; documents != nil && documents.Message != "" {
		lines = append(lines, fmt.Sprintf("the published documents of %s could not be read: %s", documents.From, documents.Message))
	}
	for _, condition := range ring.Status.Conditions {
		if condition.Status != metav1.ConditionTrue {
			line := fmt.Sprintf("%s is %s, %s", condition.Type, condition.Status, cmp.Or(condition.Reason, "no reason given"))
			if condition.Message != "" {
				line += ": " + condition.Message
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// full names the algorithms of which no more keys may be published, and from when a rotation has room again.
func full(ring *v1alpha1.KeyRing, now time.Time) []string {
	var lines []string
	for _, algorithm := range algorithmNames() {
		published, spares := 0, 0
		var free *metav1.Time
		for _, key := range ring.Status.Keys {
			if key.Algorithm != algorithm {
				continue
			}
			published++
			if key.State == string(keys.Spare) {
				spares++
			}
			if at := key.RemovableAt; at != nil && (free == nil || at.Before(free)) {
				free = at
			}
		}
		if published < keys.MaxPerAlgorithm || spares > 1 {
			continue
		}
		line := fmt.Sprintf("%s: %d keys are published, and no more may be: no rotation", algorithm, published)
		if free != nil {
			line += " before the first is removed " + wording.Instant(free, now, "-")
		}
		lines = append(lines, line)
	}
	return lines
}
