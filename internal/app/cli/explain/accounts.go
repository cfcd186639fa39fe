package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/explain"
	"github.com/credence-id/credence/internal/wording"
)

// WriteAccounts writes what becomes of the accounts of a pod.
func WriteAccounts(text *strings.Builder, x *explain.Accounts) {
	of := ""
	if x.Kind != "pod" {
		of = "pods of "
	}
	fmt.Fprintf(text, "%s%s %s/%s: %s\n", of, x.Kind, wording.OneLine(x.Namespace), wording.OneLine(x.Name), accountsSummary(x))
	writeDetails(text, x)
}

func writeDetails(text *strings.Builder, x *explain.Accounts) {
	if x.Reason != "" {
		fmt.Fprintf(text, "  why         %s\n", wording.OneLine(x.Reason))
	}
	for _, other := range x.Others {
		fmt.Fprintf(text, "  and         %s\n", wording.OneLine(other))
	}
	if x.ServiceAccount != "" {
		fmt.Fprintf(text, "  account     %s\n", wording.OneLine(x.ServiceAccount))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(text, "  note        %s\n", wording.OneLine(note))
	}
	for _, spec := range x.CredentialSpecs {
		writeSpec(text, spec)
	}
	for _, container := range x.Containers {
		writeAccount(text, container, x.CredentialSpecs)
	}
}

func accountsSummary(x *explain.Accounts) string {
	switch x.Verdict {
	case explain.Refused:
		return fmt.Sprintf("refused (%d)", x.Code)
	case explain.Unaffected:
		return "names no credential spec"
	}
	for _, spec := range x.CredentialSpecs {
		if spec.Use == "unknown" || spec.Source == "" {
			return "admitted, as far as is known"
		}
	}
	return "admitted"
}

func writeSpec(text *strings.Builder, in explain.CredentialSpec) {
	fmt.Fprintf(text, "\n  credential spec %s\n", wording.OneLine(in.Name))
	fmt.Fprintf(text, "    use       %s\n", in.Use)
	switch {
	case in.Missing:
		text.WriteString("    object    not found\n")
	case in.Source != "":
		fmt.Fprintf(text, "    object    from %s\n", wording.OneLine(in.Source))
	default:
		text.WriteString("    object    unknown\n")
	}
	if in.Account != "" {
		fmt.Fprintf(text, "    account   %s\n", wording.OneLine(in.Account))
	}
	if in.Contents != "" {
		fmt.Fprintf(text, "    contents  %s\n", wording.OneLine(in.Contents))
	}
	for _, finding := range in.Findings {
		severity, what, _ := strings.Cut(finding, ": ")
		fmt.Fprintf(text, "    %-9s %s\n", severity, wording.OneLine(what))
	}
}

func writeAccount(text *strings.Builder, in explain.Account, specs []explain.CredentialSpec) {
	fmt.Fprintf(text, "\n  %s\n", wording.OneLine(strings.TrimSpace(in.Kind+" "+in.Name)))
	switch {
	case in.From == "":
		text.WriteString("    spec      none\n")
	case in.CredentialSpec == "":
		fmt.Fprintf(text, "    spec      without a name, from %s\n", in.From)
	default:
		fmt.Fprintf(text, "    spec      %s, from %s\n", wording.OneLine(in.CredentialSpec), in.From)
	}
	contents := wording.OneLine(in.Contents)
	switch {
	case slices.ContainsFunc(specs, func(spec explain.CredentialSpec) bool {
		return spec.Name == in.CredentialSpec && spec.Contents == in.Contents && in.Contents != ""
	}):
		contents = "the contents of " + wording.OneLine(in.CredentialSpec)
	case in.ContentsUnknown:
		contents = "what the object holds"
	case in.Contents == "" && in.From != "":
		contents = "nothing: the contents are not filled in"
	case in.Contents == "":
		contents = ""
	}
	user := "the user of the image"
	if in.UserName != "" {
		user = wording.OneLine(in.UserName)
	}
	cri, oci := "run_as_username: "+user, "process.user.username: "+user
	if contents != "" {
		cri, oci = "credential_spec: "+contents+"; "+cri, "windows.credentialSpec: the same, as a string; "+oci
	}
	if in.HostProcess {
		cri, oci = cri+"; host_process", oci+"; annotation microsoft.com/hostprocess-container"
	}
	fmt.Fprintf(text, "    CRI       %s\n    OCI       %s\n", cri, oci)
}
