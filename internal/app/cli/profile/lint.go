package profile

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/profile/lint"
	"github.com/credence-id/credence/internal/wording"
)

// linting is "profile lint".
type linting struct {
	*screen.Terminal

	files  []string
	strict bool
	output string
}

func newLint(terminal *screen.Terminal) *cobra.Command {
	l := &linting{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Report what is wrong with profiles, or doubtful: two accounts with one user, for one",
		Long: `Report what is wrong with ServiceAccountProfiles and SecurityContextTemplates, or
doubtful: two accounts with one runAsUser (also through templates), which shared file
systems take for one owner; two with one username; what Kubernetes would refuse; root;
privileged containers; what the account default hands to all pods of its namespace.

FILE is YAML or JSON, of one or several documents or lists; - is standard input. Other
objects are passed over.

Exit codes: 0 nothing is refused; 1 something is, or with --strict there is a warning;
2 wrong usage, or a file that cannot be used.`,
		Example: `  credence profile lint -f cart.yaml -f restricted.yaml

  # All that a cluster has
  kubectl get serviceaccountprofiles,securitycontexttemplates -A -o yaml | credence profile lint -f -`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	cmd.Flags().StringArrayVarP(&l.files, "filename", "f", nil, "A file with profiles and templates, or - for standard input; may be repeated; required")
	cmd.Flags().BoolVar(&l.strict, "strict", false, "Exit with 1 for warnings too")
	command.Output(cmd, &l.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

func (l *linting) run(cmd *cobra.Command) error {
	if len(l.files) == 0 {
		return command.Usage(cmd, "-f is missing: give the name of a file, or - for standard input")
	}
	objects, err := read(l.In, l.files)
	if err != nil {
		return command.Usage(cmd, "-f: "+err.Error())
	}
	profiles, templates, others, err := definitions(objects)
	if err != nil {
		return command.Usage(cmd, "-f: "+err.Error())
	}
	if len(profiles)+len(templates) == 0 {
		return command.Usage(cmd, fmt.Sprintf("-f: %s: there is no ServiceAccountProfile and no SecurityContextTemplate", strings.Join(l.files, ", ")))
	}
	findings, refused := lint.Check(profiles, templates), 0
	for _, f := range findings {
		if f.Refused {
			refused++
		}
	}
	if l.output != "text" {
		err = screen.Object(l.Out, l.output, map[string]any{"refused": refused, "warnings": len(findings) - refused, "findings": append([]lint.Finding{}, findings...)})
	} else {
		for _, f := range findings {
			verdict := map[bool]string{true: "refused", false: "warning"}[f.Refused]
			fmt.Fprintln(l.Out, wording.Printable(fmt.Sprintf("%s: %s: %s (%s) %s\n  fix: %s", verdict, f.Object, f.Path, f.Rule, f.Reason, f.Fix)))
		}
		_, err = fmt.Fprintf(l.Out, "%d profiles and %d templates: %d refused, %d warnings; %d other objects\n", len(profiles), len(templates), refused, len(findings)-refused, others)
	}
	if err == nil && (refused > 0 || l.strict && len(findings) > 0) {
		return &command.Failure{Code: command.ExitRefused}
	}
	return err
}
