package gmsa

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/gmsa/convert"
	"github.com/credence-id/credence/internal/wording"
)

// convertCommand is "gmsa convert": it rewrites manifests between annotations and fields.
type convertCommand struct {
	*screen.Terminal

	files []string
	to    string
}

func newConvert(terminal *screen.Terminal) *cobra.Command {
	c := &convertCommand{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "convert -f FILE... --to fields|annotations",
		Short: "Rewrite manifests between the alpha annotations and the fields that name an account",
		Long: `Rewrite manifests of pods, and of what has pod templates, between the annotations of
Kubernetes 1.14 that named the account of a pod or container, and the fields
windowsOptions.gmsaCredentialSpecName and gmsaCredentialSpec. A field of a
container stays there; empty counts as absent. Comments and order of all
else are kept, and documents in which nothing moves are printed as they are.

FILE is YAML or JSON, of one or several documents, Lists too; - is standard input.
The result goes to standard output; nothing is applied.

Exit codes: 0 done, if only to print what is there; 2 wrong usage, or a file that
contradicts itself: an annotation and a field that differ, or an annotation for a
container that there is not. Then nothing is printed but the places.`,
		Example: `  credence gmsa convert -f my-app.yaml --to fields > my-app-fields.yaml
  kubectl get deployment my-app -o yaml | credence gmsa convert -f - --to fields`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	cmd.Flags().StringArrayVarP(&c.files, "filename", "f", nil, "A file with manifests, or - for standard input; may be repeated; required")
	cmd.Flags().StringVar(&c.to, "to", "", "What to rewrite to: fields or annotations; required")
	command.CompleteFlag(cmd, "to", cobra.FixedCompletions([]string{string(convert.Fields), string(convert.Annotations)}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *convertCommand) run(cmd *cobra.Command) error {
	if c.to == "" {
		return command.Usage(cmd, "--to is missing: fields, or annotations")
	}
	if err := command.OneOf(cmd, "to", c.to, string(convert.Fields), string(convert.Annotations)); err != nil {
		return err
	}
	manifests, err := readManifests(c.Terminal, cmd, c.files)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	var problems, notes []string
	for i, manifest := range manifests {
		result, found, err := convert.Text(manifest.text, convert.Form(c.to))
		if err != nil {
			return command.Usage(cmd, fmt.Sprintf("-f: %s: %s", manifest.file, wording.Printable(err.Error())))
		}
		for _, p := range found {
			problems = append(problems, fmt.Sprintf("%s:%d:%d: %s: %s; %s", manifest.file, p.Line, p.Column, p.Path, p.Reason, p.Fix))
		}
		if result == nil {
			continue
		}
		if i > 0 && !bytes.HasPrefix(result.Text, []byte("---")) {
			out.WriteString("---\n")
		}
		out.Write(result.Text)
		if text := result.Text; len(text) > 0 && text[len(text)-1] != '\n' && i+1 < len(manifests) {
			out.WriteByte('\n')
		}
		for _, over := range result.PassedOver {
			notes = append(notes, fmt.Sprintf("%s: %s is passed over: it is not known where its pods are", manifest.file, over))
		}
		if result.Moved == 0 {
			notes = append(notes, fmt.Sprintf("%s: nothing is there to convert to %s", manifest.file, c.to))
		}
	}
	if len(problems) > 0 {
		return command.Usage(cmd, wording.Printable(strings.Join(problems, "\nerror: ")))
	}
	for _, note := range notes {
		fmt.Fprintln(c.ErrOut, "note: "+wording.Printable(note))
	}
	_, err = c.Out.Write(out.Bytes())
	return err
}
