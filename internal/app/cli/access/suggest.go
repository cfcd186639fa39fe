package access

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/wording"
)

// suggest is "access suggest": it reads from audit logs which users lack the right to use an account.
type suggest struct {
	*screen.Terminal

	files []string
}

func newSuggest(terminal *screen.Terminal) *cobra.Command {
	s := &suggest{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "suggest --audit-log FILE...",
		Short: "Print the Roles and RoleBindings that users lacked, from an audit log",
		Long: `Print the Roles and RoleBindings of users who used service accounts without the right
to, from the audit log of an API server: of namespaces with the label
identity.credence.dev/account-use=audit or warn. kubectl apply takes them. Read them
first: a user who has used an account need not be one who should.

The accounts with the fewest users come first. Each RoleBinding is for the users of this
log, and has a name of its own for them: applying what another log gives takes no right
away. Requests that were refused are counted and left out.

The log has one event of audit.k8s.io/v1 in each line, of level Metadata or above. It is
read line by line; lines that cannot be read as events are counted, and named.

Exit codes: 0 done; 2 wrong usage, or no line is an audit event.`,
		Example: `  credence access suggest --audit-log /var/log/kubernetes/audit.log > rights.yaml
  zcat audit-*.gz | credence access suggest --audit-log -`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	cmd.Flags().StringArrayVar(&s.files, "audit-log", nil, "A file with audit events, or - for standard input; may be repeated; required")
	return cmd
}

func (s *suggest) run(cmd *cobra.Command) error {
	if len(s.files) == 0 {
		return command.Usage(cmd, "--audit-log is missing: a file with audit events, or - for standard input")
	}
	var missing access.Missing
	for _, file := range s.files {
		before, named := missing.Bad, len(missing.Named)
		if err := s.read(&missing, file); err != nil {
			return command.Usage(cmd, "--audit-log: "+err.Error())
		}
		for _, line := range missing.Named[named:] {
			fmt.Fprintf(s.ErrOut, "note: %s: %s\n", file, line)
		}
		if bad := missing.Bad - before; bad > len(missing.Named)-named {
			fmt.Fprintf(s.ErrOut, "note: %s: %s in all could not be read\n", file, wording.Plural(bad, "line", "lines"))
		}
	}
	if missing.Events == 0 && missing.Bad > 0 {
		return command.Usage(cmd, "--audit-log: no line is an audit event of audit.k8s.io")
	}
	if missing.Refused > 0 {
		fmt.Fprintf(s.ErrOut, "note: %s refused, and left out\n", wording.Plural(missing.Refused, "request was", "requests were"))
	}
	for _, user := range slices.Sorted(maps.Keys(missing.LeftOut)) {
		fmt.Fprintf(s.ErrOut, "note: %s is left out: it is every user without credentials\n", user)
	}
	suggestions := missing.Suggestions()
	if len(suggestions) == 0 {
		fmt.Fprintf(s.ErrOut, "note: no right was missing in %s\n", wording.Plural(missing.Events, "audit event", "audit events"))
	}
	return printSuggestions(s.Out, suggestions)
}

func (s *suggest) read(missing *access.Missing, file string) error {
	if file == "-" {
		return missing.Read(s.In)
	}
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	return missing.Read(log)
}

// printSuggestions prints the objects as YAML. A comment above those of an account counts what they rest on.
func printSuggestions(w io.Writer, suggestions []access.Suggestion) error {
	for i, each := range suggestions {
		separator := ""
		if i > 0 {
			separator = "---\n"
		}
		name := "service account " + each.Account.String()
		if each.Role == nil {
			name = "all service accounts of " + each.Account.Namespace
		}
		if _, err := fmt.Fprintf(w, "%s# %s: %s, in %s\n", separator, name,
			wording.Plural(len(each.Binding.Subjects), "user", "users"), wording.Plural(each.Events, "audit event", "audit events")); err != nil {
			return err
		}
		documents := []any{each.Binding}
		if each.Role != nil {
			documents = []any{each.Role, each.Binding}
		}
		if err := objects.Print(w, "yaml", documents); err != nil {
			return err
		}
	}
	return nil
}
