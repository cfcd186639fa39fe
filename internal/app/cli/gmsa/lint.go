package gmsa

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/gmsa/lint"
	"github.com/credence-id/credence/internal/wording"
)

// lintCommand is "gmsa lint": it judges credential specs by the rules of the webhook.
type lintCommand struct {
	*screen.Terminal

	files  []string
	strict bool
	output string
}

func newLint(terminal *screen.Terminal) *cobra.Command {
	l := &lintCommand{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "lint -f FILE...",
		Short: "Report what is wrong with credential specs, with line, reason and fix",
		Long: `Report what is wrong with credential specs, as far as it can be seen without Windows and
without the domain: the shape of SIDs, GUIDs and names, scopes, the plugin, what is
missing, misspelt or there twice. The rules are those of the webhook: what is refused
can never work; a warning is what is legal and goes wrong in practice.

FILE is YAML or JSON, of one or several documents; - is standard input. In it are
GMSACredentialSpecs, alone or in lists, or a credential spec as New-CredentialSpec
writes it. Other objects are passed over.

Exit codes: 0 nothing is refused; 1 something is, or with --strict there is a warning;
2 wrong usage, or a file that cannot be used.`,
		Example: `  credence gmsa lint -f webapp1-credspec.yaml
  credence gmsa lint -f contoso_webapp1.json --strict

  # All that a cluster has
  kubectl get gmsacredentialspecs -o yaml | credence gmsa lint -f -`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	cmd.Flags().StringArrayVarP(&l.files, "filename", "f", nil, "A file with credential specs, or - for standard input; may be repeated; required")
	cmd.Flags().BoolVar(&l.strict, "strict", false, "Exit with 1 for warnings too")
	command.Output(cmd, &l.output, "What to print: text, json or yaml", "text", "json", "yaml")
	return cmd
}

func (l *lintCommand) run(cmd *cobra.Command) error {
	manifests, err := readManifests(l.Terminal, cmd, l.files)
	if err != nil {
		return err
	}
	var report lintReport
	for _, manifest := range manifests {
		if err := report.add(manifest); err != nil {
			return command.Usage(cmd, fmt.Sprintf("-f: %s: %v", manifest.file, err))
		}
	}
	if len(report.Specs) == 0 {
		return command.Usage(cmd, fmt.Sprintf("-f: %s: there is no GMSACredentialSpec, and no credential spec as New-CredentialSpec writes it", strings.Join(l.files, ", ")))
	}
	report.sameNames()
	if l.output == "text" {
		err = report.print(l.Out, l.ErrOut)
	} else {
		err = screen.Object(l.Out, l.output, report.counted())
	}
	if refused, warnings := report.counts(); err == nil && (refused > 0 || l.strict && warnings > 0) {
		return &command.Failure{Code: command.ExitRefused}
	}
	return err
}

// lintReport is what was looked at, and what was found.
type lintReport struct {
	Specs      []lintedSpec `json:"credentialSpecs"`
	PassedOver []passedOver `json:"passedOver,omitempty"`
	Notes      []string     `json:"notes,omitempty"`
}

// lintedSpec is one credential spec, with its findings in the order of the file.
type lintedSpec struct {
	File string `json:"file"`
	place
	Name     string          `json:"name,omitempty"` // of the object; "": it is a bare credential spec
	Findings []placedFinding `json:"findings"`
}

type placedFinding struct {
	place
	lint.Finding
}

type passedOver struct {
	File string `json:"file"`
	place
	What string `json:"what"`
}

func (r *lintReport) counts() (refused, warnings int) {
	for _, spec := range r.Specs {
		for _, finding := range spec.Findings {
			if finding.Refused {
				refused++
			} else {
				warnings++
			}
		}
	}
	return refused, warnings
}

func (r *lintReport) counted() any {
	refused, warnings := r.counts()
	return struct {
		Refused  int `json:"refused"`
		Warnings int `json:"warnings"`
		*lintReport
	}{refused, warnings, r}
}

// sameNames finds objects that would overwrite each other.
func (r *lintReport) sameNames() {
	first := map[string]lintedSpec{}
	for i, spec := range r.Specs {
		if spec.Name == "" {
			continue
		}
		if other, seen := first[spec.Name]; seen {
			r.Specs[i].Findings = append(spec.Findings, placedFinding{spec.place, lint.Finding{
				Rule: "same-name", Path: "metadata.name",
				Reason: fmt.Sprintf("the name %q is also that of the object at %s:%d, and the last that is applied stays", spec.Name, other.File, other.Line),
				Fix:    "give it another name, or remove one of the two",
			}})
			continue
		}
		first[spec.Name] = spec
	}
}

func (r *lintReport) print(out, errOut io.Writer) error {
	for _, note := range r.Notes {
		fmt.Fprintln(errOut, "note: "+wording.Printable(note))
	}
	for _, over := range r.PassedOver {
		fmt.Fprintf(errOut, "note: %s:%d:%d: %s is passed over\n", wording.Printable(over.File), over.Line, over.Column, wording.Printable(over.What))
	}
	var text strings.Builder
	for _, spec := range r.Specs {
		slices.SortStableFunc(spec.Findings, func(a, b placedFinding) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		for _, finding := range spec.Findings {
			severity := "warning"
			if finding.Refused {
				severity = "refused"
			}
			fmt.Fprintf(&text, "%s:%d:%d: %s: %s: %s [%s]\n    fix: %s\n", spec.File, finding.Line, finding.Column, severity,
				finding.Path, finding.Reason, finding.Rule, finding.Fix)
		}
	}
	refused, warnings := r.counts()
	fmt.Fprintf(&text, "credential specs: %d; refused: %d; warnings: %d\n", len(r.Specs), refused, warnings)
	_, err := io.WriteString(out, wording.Printable(text.String()))
	return err
}
