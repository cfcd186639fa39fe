package credential

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/wording"
)

// credentialStatus is "credential status": what is kept, without its secrets.
type credentialStatus struct {
	*screen.Terminal
	cacheFolder, output string
}

func newCredentialStatusCommand(terminal *screen.Terminal) *cobra.Command {
	s := &credentialStatus{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is kept, for whom, and until when",
		Long: `Show which credentials are kept on this machine for you: what each is, its state, and
when it expires. Nothing secret is shown, and no other machine is contacted.

States: valid; expired; renewable (expired, but a new one can be got without you);
failed (the last attempt did, for the reason shown with -o json); unreadable.`,
		Example: `  credence credential status
  credence credential status -o json`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	provider.CacheFolderFlag(cmd.Flags(), &s.cacheFolder)
	command.Output(cmd, &s.output, "How to print it: table, json or yaml", "table", "json", "yaml")
	return cmd
}

// keptIn is the folder that was given, or the user's.
func keptIn(given string) (string, error) {
	folder, err := provider.Folder(given)
	if err != nil {
		return "", &command.Failure{Line: "error: " + err.Error(), Code: command.ExitUsage, Err: err}
	}
	return folder, nil
}

// keptCredential is what is printed of one.
type keptCredential struct {
	ID        string            `json:"id"`
	Key       map[string]string `json:"key,omitempty"`
	State     string            `json:"state"`
	Holds     []string          `json:"holds,omitempty"`
	Obtained  *time.Time        `json:"obtained,omitempty"`
	Expires   *time.Time        `json:"expires,omitempty"`
	Renewable bool              `json:"renewable,omitempty"`
	Failure   *keptFailure      `json:"lastFailure,omitempty"`
	Problem   string            `json:"problem,omitempty"`
}

type keptFailure struct {
	At      time.Time `json:"at"`
	Class   string    `json:"class"`
	Message string    `json:"message"`
	InARow  int       `json:"inARow"`
}

func (s *credentialStatus) run(cmd *cobra.Command) error {
	folder, err := keptIn(s.cacheFolder)
	if err != nil {
		return err
	}
	list, err := credential.List(folder)
	if err != nil {
		return err
	}
	shown := []keptCredential{}
	for _, kept := range list {
		shown = append(shown, show(kept, s.Now()))
	}
	if s.output != "table" {
		return screen.Object(s.Out, s.output, map[string]any{"folder": folder, "credentials": shown})
	}
	if len(shown) == 0 {
		_, err := fmt.Fprintf(s.Out, "Nothing is kept in %s.\n", folder)
		return err
	}
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSOURCE\tFOR\tSTATE\tEXPIRES")
	for _, kept := range shown {
		expires := "-"
		if kept.Expires != nil {
			expires = kept.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", kept.ID[:shortID], wording.Printable(cmp.Or(kept.Key["source"], "-")), wording.Printable(whom(kept.Key)), kept.State, expires)
	}
	return table.Flush()
}

// shortID is how much of a name is shown, and enough to tell it from others.
const shortID = 12

func show(kept credential.Kept, now time.Time) keptCredential {
	shown := keptCredential{ID: string(kept.Name), Key: kept.Key, Renewable: kept.Renewable}
	if kept.Token {
		shown.Holds = append(shown.Holds, "token")
	}
	if kept.Certificate {
		shown.Holds = append(shown.Holds, "certificate")
	}
	if !kept.Obtained.IsZero() {
		shown.Obtained = &kept.Obtained
	}
	if !kept.Expires.IsZero() {
		shown.Expires = &kept.Expires
	}
	if f := kept.Failure; f != nil {
		shown.Failure = &keptFailure{At: f.At, Class: string(f.Class), Message: wording.Redact(f.Message), InARow: f.Count}
	}
	if kept.Problem != nil {
		shown.Problem = kept.Problem.Error()
	}
	shown.State = state(kept, now)
	return shown
}

func state(kept credential.Kept, now time.Time) string {
	switch {
	case kept.Problem != nil:
		return "unreadable"
	case now.Before(kept.Expires):
		return "valid"
	case kept.Failure != nil:
		return "failed"
	case kept.Renewable:
		return "renewable"
	}
	return "expired"
}

// whom returns in one word or two what a credential is for.
func whom(key map[string]string) string {
	switch key["source"] {
	case "workload-identity":
		return fmt.Sprintf("%s/%s at %s", key["namespace"], key["name"], key["server"])
	case "oidc":
		return fmt.Sprintf("%s at %s", key["clientID"], key["issuer"])
	case "client-certificate":
		return fmt.Sprintf("%s at %s", key["commonName"], key["server"])
	case "token-exchange":
		return strings.TrimSpace(fmt.Sprintf("%s by %s", strings.ReplaceAll(key["audiences"], "\n", " "), key["endpoint"]))
	case "in-order":
		return "several, in their order"
	}
	return "-"
}

// find returns the names that begin with an ID that a user typed; an error unless it is exactly one.
func find(list []credential.Kept, id string) (credential.Kept, error) {
	var found []credential.Kept
	for _, kept := range list {
		if strings.HasPrefix(string(kept.Name), id) {
			found = append(found, kept)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return credential.Kept{}, fmt.Errorf("%q is the beginning of %d IDs: give more of it", id, len(found))
	}
	return credential.Kept{}, fmt.Errorf("nothing with the ID %q is kept: credence credential status lists what is", id)
}

// completeIDs completes the IDs of what is kept.
func completeIDs(cacheFolder *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		folder, err := provider.Folder(*cacheFolder)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := credential.List(folder)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, kept := range list {
			id := shortName(kept.Name)
			if !slices.Contains(args, id) {
				ids = append(ids, id+"\t"+wording.Printable(whom(kept.Key)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func shortName(name cache.Name) string { return string(name)[:shortID] }
