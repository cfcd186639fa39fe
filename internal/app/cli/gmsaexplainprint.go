package cli

import (
	"fmt"
	"slices"
	"strings"
)

func (x *gmsaExplanation) write(text *strings.Builder) {
	of := ""
	if x.Kind != "pod" {
		of = "pods of "
	}
	fmt.Fprintf(text, "%s%s %s/%s: %s\n", of, x.Kind, oneLine(x.Namespace), oneLine(x.Name), x.summary())
	x.details(text)
}

func (x *gmsaExplanation) details(text *strings.Builder) {
	if x.Reason != "" {
		fmt.Fprintf(text, "  why         %s\n", oneLine(x.Reason))
	}
	for _, other := range x.Others {
		fmt.Fprintf(text, "  and         %s\n", oneLine(other))
	}
	if x.ServiceAccount != "" {
		fmt.Fprintf(text, "  account     %s\n", oneLine(x.ServiceAccount))
	}
	for _, note := range x.Notes {
		fmt.Fprintf(text, "  note        %s\n", oneLine(note))
	}
	for _, spec := range x.CredentialSpecs {
		spec.write(text)
	}
	for _, container := range x.Containers {
		container.write(text, x.CredentialSpecs)
	}
}

func (x *gmsaExplanation) summary() string {
	switch x.Verdict {
	case podRefused:
		return fmt.Sprintf("refused (%d)", x.Code)
	case podUnaffected:
		return "names no credential spec"
	}
	for _, spec := range x.CredentialSpecs {
		if spec.Use == "unknown" || spec.Source == "" {
			return "admitted, as far as is known"
		}
	}
	return "admitted"
}

func (in credspecInPod) write(text *strings.Builder) {
	fmt.Fprintf(text, "\n  credential spec %s\n", oneLine(in.Name))
	fmt.Fprintf(text, "    use       %s\n", in.Use)
	switch {
	case in.Missing:
		text.WriteString("    object    not found\n")
	case in.Source != "":
		fmt.Fprintf(text, "    object    from %s\n", oneLine(in.Source))
	default:
		text.WriteString("    object    unknown\n")
	}
	if in.Account != "" {
		fmt.Fprintf(text, "    account   %s\n", oneLine(in.Account))
	}
	if in.Contents != "" {
		fmt.Fprintf(text, "    contents  %s\n", oneLine(in.Contents))
	}
	for _, finding := range in.Findings {
		severity, what, _ := strings.Cut(finding, ": ")
		fmt.Fprintf(text, "    %-9s %s\n", severity, oneLine(what))
	}
}

func (in accountOfOne) write(text *strings.Builder, specs []credspecInPod) {
	fmt.Fprintf(text, "\n  %s\n", oneLine(strings.TrimSpace(in.Kind+" "+in.Name)))
	switch {
	case in.From == "":
		text.WriteString("    spec      none\n")
	case in.CredentialSpec == "":
		fmt.Fprintf(text, "    spec      without a name, from %s\n", in.From)
	default:
		fmt.Fprintf(text, "    spec      %s, from %s\n", oneLine(in.CredentialSpec), in.From)
	}
	contents := oneLine(in.Contents)
	switch {
	case slices.ContainsFunc(specs, func(spec credspecInPod) bool {
		return spec.Name == in.CredentialSpec && spec.Contents == in.Contents && in.Contents != ""
	}):
		contents = "the contents of " + oneLine(in.CredentialSpec)
	case in.ContentsUnknown:
		contents = "what the object holds"
	case in.Contents == "" && in.From != "":
		contents = "nothing: the contents are not filled in"
	case in.Contents == "":
		contents = ""
	}
	user := "the user of the image"
	if in.UserName != "" {
		user = oneLine(in.UserName)
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
