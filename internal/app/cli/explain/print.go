package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

// Print prints explanations as JSON, or as the text that write makes of each.
func Print[T any](out io.Writer, format string, explanations []T, write func(*strings.Builder, T)) error {
	if format != "text" {
		return screen.Object(out, format, struct {
			Pods []T `json:"pods"`
		}{explanations})
	}
	var text strings.Builder
	for i, x := range explanations {
		if i > 0 {
			text.WriteString("\n")
		}
		write(&text, x)
	}
	_, err := io.WriteString(out, wording.Printable(text.String()))
	return err
}

func writePod(text *strings.Builder, x *explain.Pod) {
	of := ""
	if x.Kind != "pod" {
		of = "pods of "
	}
	fmt.Fprintf(text, "%s%s %s/%s: %s\n", of, x.Kind, wording.OneLine(x.Namespace), wording.OneLine(x.Name), podSummary(x))
	if x.Reason != "" {
		fmt.Fprintf(text, "  why         %s\n", wording.OneLine(x.Reason))
	}
	if x.NamespaceLabel != "" {
		fmt.Fprintf(text, "  namespace   %s\n", wording.OneLine(x.NamespaceLabel))
	}
	if x.ServiceAccount != "" {
		in := "annotation " + v1alpha1.AnnotationAccountIdentities
		if x.Profile != nil && x.Profile.ListsIdentities {
			in = "profile"
		}
		fmt.Fprintf(text, "  account     %s, which lists %s in its %s\n", wording.OneLine(x.ServiceAccount), wording.Plural(len(x.Identities), "identity", "identities"), in)
	}
	writeProfile(text, x.Profile)
	if x.Gated {
		fmt.Fprintf(text, "  gate        %s: it is scheduled once its tokens exist\n", v1alpha1.GateToken)
	}
	if x.DryRun {
		text.WriteString("  dry run     the API server tried to create such a pod, as you\n")
	}
	if x.Waiting != nil {
		fmt.Fprintf(text, "  condition   %s\n", warningLine(x.Waiting))
	}
	if x.LastFailure != nil && (x.Waiting == nil || x.LastFailure.Message != x.Waiting.Message) {
		fmt.Fprintf(text, "  event       %s\n", warningLine(x.LastFailure))
	}
	if x.Drift != nil && x.Drift.Drifted() {
		fmt.Fprintf(text, "  drift       %s\n", wording.OneLine(x.Drift.String()))
	}
	for _, warning := range x.Warnings {
		fmt.Fprintf(text, "  warning     %s\n", wording.OneLine(warning))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(text, "  note        %s\n", wording.OneLine(note))
	}
	for _, identity := range x.Identities {
		writeIdentity(text, x, identity)
	}
	if x.GMSA != nil {
		fmt.Fprintf(text, "\n  Windows accounts (gMSA): %s\n", accountsSummary(x.GMSA))
		writeDetails(text, x.GMSA)
	}
}

func writeProfile(text *strings.Builder, p *explain.Profile) {
	if p == nil {
		return
	}
	of := ""
	if p.Mode != "" {
		of = ", mode " + p.Mode
	}
	if p.Template != "" {
		of += ", of SecurityContextTemplate " + wording.OneLine(p.Template)
	}
	fmt.Fprintf(text, "  profile     %s%s\n", wording.OneLine(p.Name), of)
	for _, field := range p.FilledIn {
		fmt.Fprintf(text, "    fills in  %s: %s\n", wording.OneLine(field.Path), wording.OneLine(field.Value))
	}
}

func podSummary(x *explain.Pod) string {
	switch x.Verdict {
	case explain.Refused:
		return fmt.Sprintf("refused (%d)", x.Code)
	case explain.Unserved:
		if len(x.Identities) == 0 {
			return "its profile is not applied"
		}
		return "gets no identity, though its service account lists some"
	case explain.Blocked:
		return "admitted, but it does not start"
	case explain.Waits:
		return "waits: no agent has looked at this pod"
	case explain.Unknown:
		return "unknown"
	case explain.Unaffected:
		return "gets no identity: its service account lists none"
	default:
		return "admitted"
	}
}

func writeIdentity(text *strings.Builder, x *explain.Pod, in *explain.Identity) {
	kind := ""
	if in.Type != "" {
		kind = " (" + in.Type + ")"
	}
	fmt.Fprintf(text, "\n  identity %s%s\n", in.Name, kind)
	fmt.Fprintf(text, "    use       %s\n", in.Use)
	if in.Reason != "" {
		fmt.Fprintf(text, "    refused   %s\n", wording.OneLine(in.Reason))
	}
	if x.Delivery == v1alpha1.DeliveryCSI {
		fmt.Fprintf(text, "    volume    of %s: the token is not stored, and the kubelet waits for it\n", v1alpha1.CSIDriver)
	}
	if in.State != "" {
		fmt.Fprintf(text, "    secret    %s %s\n", in.Secret, wording.OneLine(in.State))
	}
	if in.LastFailure != nil {
		fmt.Fprintf(text, "    event     %s\n", warningLine(in.LastFailure))
	}
	if in.Missing {
		text.WriteString("    missing   the pod was created without it, and gets it only when it is created anew\n")
	}
	for _, container := range in.Containers {
		fmt.Fprintf(text, "    container %s\n", wording.OneLine(container.Name))
		for _, file := range container.Files {
			fmt.Fprintf(text, "      file      %s\n", wording.OneLine(file))
		}
		for _, variable := range container.Variables {
			fmt.Fprintf(text, "      variable  %s=%s\n", wording.OneLine(variable.Name), wording.OneLine(variable.Value))
		}
		for _, kept := range container.Kept {
			fmt.Fprintf(text, "      kept      %s, which the container sets itself\n", wording.OneLine(kept))
		}
	}
}

// warningLine is a warning on one line, with its time in full.
func warningLine(w *inventory.Warning) string {
	return w.Time.Format(time.RFC3339) + " " + wording.OneLine(w.Reason+": "+w.Message)
}
