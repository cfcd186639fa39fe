package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// printExplained prints explanations, as text or as JSON.
func printExplained[T interface{ write(*strings.Builder) }](out io.Writer, format string, explanations []T) error {
	if format != "text" {
		return printObject(out, format, struct {
			Pods []T `json:"pods"`
		}{explanations})
	}
	var text strings.Builder
	for i, x := range explanations {
		if i > 0 {
			text.WriteString("\n")
		}
		x.write(&text)
	}
	_, err := io.WriteString(out, printable(text.String()))
	return err
}

func (x *podExplanation) write(text *strings.Builder) {
	of := ""
	if x.Kind != "pod" {
		of = "pods of "
	}
	fmt.Fprintf(text, "%s%s %s/%s: %s\n", of, x.Kind, oneLine(x.Namespace), oneLine(x.Name), x.summary())
	if x.Reason != "" {
		fmt.Fprintf(text, "  why         %s\n", oneLine(x.Reason))
	}
	if x.namespaceLabel != "" {
		fmt.Fprintf(text, "  namespace   %s\n", oneLine(x.namespaceLabel))
	}
	if x.ServiceAccount != "" {
		fmt.Fprintf(text, "  account     %s, which lists %s in its annotation %s\n", oneLine(x.ServiceAccount), plural(len(x.Identities), "identity", "identities"), v1alpha1.AnnotationAccountIdentities)
	}
	if x.Gated {
		fmt.Fprintf(text, "  gate        %s: it is scheduled once its tokens exist\n", v1alpha1.GateToken)
	}
	if x.DryRun {
		text.WriteString("  dry run     the API server tried to create such a pod, as you\n")
	}
	if x.Waiting != nil {
		fmt.Fprintf(text, "  condition   %s\n", x.Waiting.line())
	}
	if x.LastFailure != nil && (x.Waiting == nil || x.LastFailure.Message != x.Waiting.Message) {
		fmt.Fprintf(text, "  event       %s\n", x.LastFailure.line())
	}
	for _, warning := range x.Warnings {
		fmt.Fprintf(text, "  warning     %s\n", oneLine(warning))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(text, "  note        %s\n", oneLine(note))
	}
	for _, identity := range x.Identities {
		identity.write(text)
	}
	if x.GMSA != nil {
		fmt.Fprintf(text, "\n  Windows accounts (gMSA): %s\n", x.GMSA.summary())
		x.GMSA.details(text)
	}
}

func (x *podExplanation) summary() string {
	switch x.Verdict {
	case podRefused:
		return fmt.Sprintf("refused (%d)", x.Code)
	case podUnserved:
		return "gets no identity, though its service account lists some"
	case podBlocked:
		return "admitted, but it does not start"
	case podUnknown:
		return "unknown"
	case podUnaffected:
		return "gets no identity: its service account lists none"
	default:
		return "admitted"
	}
}

func (in *identityInPod) write(text *strings.Builder) {
	kind := ""
	if in.Type != "" {
		kind = " (" + in.Type + ")"
	}
	fmt.Fprintf(text, "\n  identity %s%s\n", in.Name, kind)
	fmt.Fprintf(text, "    use       %s\n", in.Use)
	if in.Reason != "" {
		fmt.Fprintf(text, "    refused   %s\n", oneLine(in.Reason))
	}
	if in.State != "" {
		fmt.Fprintf(text, "    secret    %s %s\n", in.Secret, oneLine(in.State))
	}
	if in.LastFailure != nil {
		fmt.Fprintf(text, "    event     %s\n", in.LastFailure.line())
	}
	if in.Missing {
		text.WriteString("    missing   the pod was created without it, and gets it only when it is created anew\n")
	}
	for _, container := range in.Containers {
		fmt.Fprintf(text, "    container %s\n", oneLine(container.Name))
		for _, file := range container.Files {
			fmt.Fprintf(text, "      file      %s\n", oneLine(file))
		}
		for _, variable := range container.Variables {
			fmt.Fprintf(text, "      variable  %s=%s\n", oneLine(variable.Name), oneLine(variable.Value))
		}
		for _, kept := range container.Kept {
			fmt.Fprintf(text, "      kept      %s, which the container sets itself\n", oneLine(kept))
		}
	}
}
