package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/clouderror"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/wording"
)

// maxErrorText bounds what is read of a log.
const maxErrorText = 64 << 10

// explainError explains by which errors clouds refuse a token. The input is not repeated: it may contain a token.
func (d *checkup) explainError(cmd *cobra.Command, names []string) error {
	text := d.errorText
	if text == "-" {
		read, err := io.ReadAll(io.LimitReader(d.In, maxErrorText))
		if err != nil {
			return fmt.Errorf("read the message from standard input: %w", err)
		}
		text = string(read)
	}
	if strings.TrimSpace(text) == "" {
		return command.Usage(cmd, "--error is empty: give a code such as AADSTS70021, or the message of the cloud")
	}
	identity, err := d.named(cmd, names)
	if err != nil {
		return err
	}
	explanations := targets.Explain(text, system(identity))
	if len(explanations) == 0 {
		explanations = targets.Explain(text, "")
	}
	if len(explanations) == 0 {
		return &command.Failure{
			Line: "error: nothing is known of this error",
			Hint: "give the whole message of the cloud; which errors are known: docs/reference/cloud-errors.md",
			Code: command.ExitRefused,
		}
	}
	if d.output != "text" {
		report := struct {
			Explanations []clouderror.Explanation `json:"explanations"`
			// Identity has the values to compare.
			Identity *comparedIdentity `json:"identity,omitempty"`
		}{explanations, compared(identity)}
		return screen.Object(d.Out, d.output, report)
	}
	return d.printExplanations(explanations, compared(identity))
}

// named reads the identity of the command line, or nil.
func (d *checkup) named(cmd *cobra.Command, names []string) (*v1alpha1.WorkloadIdentity, error) {
	if len(names) == 0 {
		return nil, nil
	}
	home, err := d.connection.Namespace()
	if err != nil {
		return nil, err
	}
	both, err := d.connection.OpenBoth(d.ErrOut, d.identityKubeconfig)
	if err != nil {
		return nil, err
	}
	identity, err := both.Identity.Identity(cmd.Context(), home, names[0])
	if err != nil {
		request := connection.Request{Namespace: home, Name: names[0], Program: cmd.Root().DisplayName()}
		return nil, request.Failure(fmt.Sprintf("read WorkloadIdentity %s/%s", home, names[0]), err)
	}
	return identity, nil
}

// system is the relying party of an identity's tokens; empty if that may be any.
func system(identity *v1alpha1.WorkloadIdentity) string {
	if identity == nil {
		return ""
	}
	if systems := targets.TrustingType(identity.Spec.TargetSystem.Type); len(systems) == 1 {
		return systems[0]
	}
	return ""
}

// comparedIdentity are the values of an identity that the other side must have, byte for byte.
type comparedIdentity struct {
	Namespace      string          `json:"namespace"`
	Name           string          `json:"name"`
	Issuer         string          `json:"issuer"`
	Subject        string          `json:"subject"`
	Audiences      []string        `json:"audiences"`
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}

func compared(identity *v1alpha1.WorkloadIdentity) *comparedIdentity {
	if identity == nil {
		return nil
	}
	values := &comparedIdentity{
		Namespace: identity.Namespace, Name: identity.Name, Issuer: identity.Status.Issuer,
		Subject: identity.Status.Sub, Audiences: identity.Spec.Audiences,
	}
	if config := identity.Spec.TargetSystem.ProviderConfig; config != nil && json.Valid(config.Raw) {
		values.ProviderConfig = config.Raw
	}
	return values
}

func (d *checkup) printExplanations(explanations []clouderror.Explanation, values *comparedIdentity) error {
	var text strings.Builder
	for i, explanation := range explanations {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "%s (%s)\n  %s\n", explanation.Code, explanation.System, explanation.Cause)
		for _, check := range explanation.Checks {
			fmt.Fprintf(&text, "  - %s\n", check)
		}
		if values == nil {
			continue
		}
		for _, fact := range explanation.Facts {
			switch fact {
			case clouderror.Issuer:
				fmt.Fprintf(&text, "  issuer          %s\n", wording.OneLine(values.Issuer))
			case clouderror.Subject:
				fmt.Fprintf(&text, "  subject         %s\n", wording.OneLine(values.Subject))
			case clouderror.Audiences:
				fmt.Fprintf(&text, "  audiences       %s\n", wording.Quoted(values.Audiences...))
			case clouderror.Config:
				if len(values.ProviderConfig) > 0 {
					fmt.Fprintf(&text, "  providerConfig  %s\n", wording.OneLine(string(values.ProviderConfig)))
				}
			}
		}
	}
	_, err := io.WriteString(d.Out, wording.Printable(text.String()))
	return err
}
