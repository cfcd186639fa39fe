package keys

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/wording"
)

// acknowledge is "keys acknowledge".
type acknowledge struct {
	*screen.Terminal
	connection *connection.Flags

	remove, list bool
	output       string
}

// maxKnownKeys is how many keys the API takes for one relying party.
const maxKnownKeys = 50

// updateAttempts bounds how often an update is tried again because another one came first.
const updateAttempts = 5

func newAcknowledge(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	a := &acknowledge{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "acknowledge NAME [KID...]",
		Short: "Record that a relying party was given a copy of the keys",
		Long: `Record that the relying party NAME, which does not fetch the keys by itself, has been
given them: all that are published, or those that are named. From the first time on,
no new key signs before you have recorded that NAME was given it, too.`,
		Example: `  # After uploading the key set to it
  credence keys acknowledge partner-bank

  # List who has which keys, and stop waiting for one
  credence keys acknowledge --list
  credence keys acknowledge partner-bank --remove`,
		Args: func(cmd *cobra.Command, args []string) error { return a.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args) },
	}
	cmd.Annotations = map[string]string{connection.NeedsCluster: "yes", takesKeyIDs: "yes"}
	cmd.Flags().BoolVar(&a.remove, "remove", false, "Do not wait for NAME any more: it fetches the keys by itself now, or no longer relies on them")
	cmd.Flags().BoolVar(&a.list, "list", false, "List the relying parties, and the published keys that they have not been given")
	command.Output(cmd, &a.output, "With --list, what to print: table, json or yaml", "table", "json", "yaml")
	cmd.ValidArgsFunction = a.complete
	return cmd
}

func (a *acknowledge) check(cmd *cobra.Command, args []string) error {
	switch {
	case a.list && (a.remove || len(args) > 0):
		return command.Usage(cmd, "--list stands alone: it changes nothing")
	case a.list:
		return nil
	case cmd.Flags().Changed("output"):
		return command.Usage(cmd, "--output is for --list")
	case len(args) == 0 || args[0] == "":
		return command.Usage(cmd, "wanted is the NAME of a relying party")
	case a.remove && len(args) > 1:
		return command.Usage(cmd, "--remove takes a NAME alone: the relying party is waited for no more, whatever it was given")
	}
	for _, id := range args[1:] {
		if err := checkKeyID(cmd, id); err != nil {
			return err
		}
	}
	return nil
}

func (a *acknowledge) run(cmd *cobra.Command, args []string) error {
	api, err := a.connection.Open(a.ErrOut)
	if err != nil {
		return err
	}
	ring := apiRing{Terminal: a.Terminal, api: api, program: cmd.Root().DisplayName()}
	if a.list {
		object, err := ring.read(cmd.Context())
		if err != nil {
			return err
		}
		return printParties(a.Out, a.output, object)
	}
	return a.change(cmd.Context(), ring, args[0], args[1:])
}

// change changes the ring as it is by now, so that no change of relying parties by others at the same time is
// lost.
func (a *acknowledge) change(ctx context.Context, ring apiRing, name string, ids []string) error {
	var err error
	for range updateAttempts {
		var object *v1alpha1.KeyRing
		if object, err = ring.read(ctx); err != nil {
			return err
		}
		said, failed := a.edit(object, ring.program, name, ids)
		if failed != nil {
			return failed
		}
		if err = ring.update(ctx, object); err == nil {
			_, err := io.WriteString(a.Out, said)
			return err
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return apiFailure(ring.program, "change the relying parties of the ring of keys", err)
}

// edit changes the spec of a ring, and returns the message for when that is saved.
func (a *acknowledge) edit(ring *v1alpha1.KeyRing, program, name string, ids []string) (string, *command.Failure) {
	parties := &ring.Spec.RelyingParties
	i := slices.IndexFunc(*parties, func(p v1alpha1.RelyingParty) bool { return p.Name == name })
	if a.remove {
		if i < 0 {
			return "", &command.Failure{
				Line: fmt.Sprintf("error: there is no relying party %q with a copy of the keys", name),
				Hint: fmt.Sprintf("see which there are: %s keys acknowledge --list", program), Code: command.ExitRefused,
			}
		}
		*parties = slices.Delete(*parties, i, i+1)
		return fmt.Sprintf("%s: removed; no key waits for it any more.\n", name), nil
	}
	said := ""
	if i < 0 {
		*parties = append(*parties, v1alpha1.RelyingParty{Name: name})
		i = len(*parties) - 1
		said = fmt.Sprintf("%s: new; from now on no key signs before it has been given it.\n", name)
	}
	published := publishedKeys(ring)
	if len(ids) == 0 {
		ids = published
	}
	party := &(*parties)[i]
	for _, id := range ids {
		if !slices.Contains(published, id) {
			return "", &command.Failure{
				Line: fmt.Sprintf("error: key %s is not published, so no relying party has to be given it", id),
				Hint: fmt.Sprintf("see which keys are: %s keys list", program), Code: command.ExitRefused,
			}
		}
		if !slices.Contains(party.KnownKeys, id) {
			party.KnownKeys = append(party.KnownKeys, id)
		}
	}
	if len(party.KnownKeys) > maxKnownKeys {
		party.KnownKeys = slices.DeleteFunc(party.KnownKeys, func(id string) bool { return !slices.Contains(published, id) })
	}
	missing := slices.DeleteFunc(published, func(id string) bool { return slices.Contains(party.KnownKeys, id) })
	if len(missing) == 0 {
		return said + fmt.Sprintf("%s: has been given all %d published keys.\n", name, len(ring.Status.Keys)), nil
	}
	return said + fmt.Sprintf("%s: has not been given: %s\n", name, wording.OneLine(strings.Join(missing, ", "))), nil
}

func publishedKeys(ring *v1alpha1.KeyRing) []string {
	var ids []string
	for _, key := range ring.Status.Keys {
		ids = append(ids, key.ID)
	}
	return ids
}

// partyKeys are the published keys that a relying party has been given, and those that it has not.
type partyKeys struct {
	Name     string   `json:"name"`
	Given    []string `json:"given"`
	NotGiven []string `json:"notGiven"`
}

// printParties compares spec and published keys itself: the status follows a moment later.
func printParties(w io.Writer, output string, ring *v1alpha1.KeyRing) error {
	parties := []partyKeys{}
	for _, party := range ring.Spec.RelyingParties {
		keys := partyKeys{Name: party.Name, Given: []string{}, NotGiven: []string{}}
		for _, id := range publishedKeys(ring) {
			if slices.Contains(party.KnownKeys, id) {
				keys.Given = append(keys.Given, id)
			} else {
				keys.NotGiven = append(keys.NotGiven, id)
			}
		}
		parties = append(parties, keys)
	}
	if output != "table" {
		return screen.Object(w, output, struct {
			RelyingParties []partyKeys `json:"relyingParties"`
		}{parties})
	}
	if len(parties) == 0 {
		_, err := fmt.Fprintln(w, "No relying party is known that has a copy of the keys: none is waited for.")
		return err
	}
	rows := [][]string{{"NAME", "GIVEN", "NOT GIVEN"}}
	for _, party := range parties {
		lacks := cmp.Or(strings.Join(party.NotGiven, ", "), "-")
		rows = append(rows, []string{party.Name, fmt.Sprintf("%d of %d", len(party.Given), len(party.Given)+len(party.NotGiven)), lacks})
	}
	return screen.Table(w, rows...)
}

func (a *acknowledge) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	choice := newRingChoice(a.Terminal, a.connection)
	if len(args) > 0 {
		if a.remove {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return choice.completeKeys(cmd, args[1:])
	}
	ring, err := choice.forCompletion(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, party := range ring.Spec.RelyingParties {
		names = append(names, wording.OneLine(party.Name))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
