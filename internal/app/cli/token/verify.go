package token

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/wording"
)

// verify is "token verify": it judges a token as a relying party would.
type verify struct {
	*screen.Terminal

	issuer, audience, caFile, connect, output string
}

func newVerify(terminal *screen.Terminal) *cobra.Command {
	v := &verify{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "verify TOKEN|FILE|-",
		Short: "Verify a token through its issuer's discovery documents, as any relying party would",
		Long: `Verify a token: fetch the discovery document and the keys of its issuer over
https, and check issuer, audience, times, key and signature. Everything that is
wrong is reported, not only the first thing.

Without --issuer, the issuer is the one that the token names. Then the result
proves who signed it, and whether you trust that issuer is up to you.

` + tokenArgumentHelp + `

Exit codes: 0 valid, 1 refused, 2 wrong usage, 3 it could not be verified, because
the issuer's documents could not be read.`,
		Example: `  credence token create my-app | credence token verify - --audience my-audience

  # Against the issuer of: credence up
  credence token create my-app | credence token verify - --ca-file .credence/ca.crt`,
		Args: command.ExactlyOne("a TOKEN, the path of a FILE with a slash in it, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd, args[0]) },
	}
	v.addFlags(cmd)
	return cmd
}

func (v *verify) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.issuer, "issuer", "", "The https URL of the issuer that the token must be of; default: the one that the token names")
	cmd.Flags().StringVar(&v.audience, "audience", "", "The audience that the token must be for; default: any")
	cmd.Flags().StringVar(&v.caFile, "ca-file", "", connection.CAFileHelp)
	cmd.Flags().StringVar(&v.connect, "connect", "", "HOST[:PORT] to request the issuer's documents from, which shows a certificate for that name, such as the Service of the discovery server; default: the host of the issuer")
	command.Output(cmd, &v.output, "What to print: text, json or yaml", "text", "json", "yaml")
}

func (v *verify) run(cmd *cobra.Command, argument string) error {
	options, err := v.options(cmd)
	if err != nil {
		return err
	}
	token, err := Read(v.In, argument)
	if err != nil {
		return err
	}
	return v.judge(cmd, token, options)
}

func (v *verify) judge(cmd *cobra.Command, token string, options relyingparty.Options) error {
	stop := v.WaitingFor("the issuer's discovery documents")
	result, outage := relyingparty.Verify(cmd.Context(), token, options)
	stop()
	if err := v.print(result, outage); err != nil {
		return err
	}
	switch {
	case len(result.Findings) > 0:
		// One thing that is wrong is enough, whatever the issuer's part would have shown.
		return &command.Failure{Code: command.ExitRefused}
	case outage != nil:
		return outageFailure(outage)
	}
	return nil
}

func (v *verify) options(cmd *cobra.Command) (relyingparty.Options, error) {
	options := relyingparty.Options{Audience: v.audience, Clock: v.Now}
	if cmd.Flags().Changed("audience") && v.audience == "" {
		return options, command.Usage(cmd, "--audience is empty")
	}
	if cmd.Flags().Changed("issuer") {
		issuer, err := identity.ParseIssuer(v.issuer)
		if err != nil {
			return options, command.Usage(cmd, "--issuer: "+err.Error())
		}
		options.Issuer = issuer
	}
	var roots *x509.CertPool
	if cmd.Flags().Changed("ca-file") {
		var err error
		if roots, err = connection.ReadAuthorities(v.caFile); err != nil {
			return options, command.Usage(cmd, "--ca-file: "+err.Error())
		}
	}
	options.Client = relyingparty.Trusting(roots)
	if v.connect != "" {
		options.Client = relyingparty.TrustingAt(v.connect, roots)
	}
	return options, nil
}

func outageFailure(outage error) *command.Failure {
	failed := &command.Failure{
		Line: "error: the token could not be verified: " + outage.Error(),
		Hint: "nothing is known about the token: check that the issuer can be reached from here",
		Code: command.ExitOutage, Err: outage,
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](outage); ok {
		failed.Hint = "the issuer's certificate is not of an authority that is trusted here: name one by --ca-file FILE"
	}
	return failed
}

func (v *verify) print(result relyingparty.Result, outage error) error {
	if v.output != "text" {
		return screen.Object(v.Out, v.output, verdict(result, outage))
	}
	if result.Valid() {
		return printValid(v.Out, result, v.Now())
	}
	if len(result.Findings) == 0 {
		return nil // an outage is an error, and printed as one
	}
	return printRefused(v.Out, result, outage)
}

// verdict is the JSON form of a judgement. Claims are in it only if they are verified.
func verdict(result relyingparty.Result, outage error) any {
	report := struct {
		Verdict         string                 `json:"verdict"` // valid, refused or unknown
		Issuer          identity.Issuer        `json:"issuer,omitempty"`
		IssuerFromToken bool                   `json:"issuerFromToken"`
		Audience        string                 `json:"audience,omitempty"`
		Findings        []relyingparty.Finding `json:"findings,omitempty"`
		Outage          string                 `json:"outage,omitempty"`
		Claims          json.RawMessage        `json:"claims,omitempty"`
	}{
		Verdict: "refused", Issuer: result.Issuer, IssuerFromToken: result.IssuerFromToken,
		Audience: result.Audience, Findings: result.Findings,
	}
	if outage != nil {
		report.Outage = outage.Error()
	}
	switch {
	case result.Valid():
		report.Verdict, report.Claims = "valid", result.Inspection.Claims
	case outage != nil && len(result.Findings) == 0:
		report.Verdict = "unknown"
	}
	return report
}

func printValid(w io.Writer, result relyingparty.Result, now time.Time) error {
	token := result.Inspection
	audience := "any was accepted: require one by --audience"
	if result.Audience != "" {
		audience = "wanted: " + wording.Quoted(result.Audience)
	}
	key := "key " + wording.Quoted(token.KeyID)
	if token.KeyID == "" {
		key = "it names no key"
	}
	_, err := fmt.Fprintf(w, `valid
issuer      %s%s
algorithm   %s (%s)
subject     %s
audience    %s (%s)
expires     %s
`, result.Issuer, namedByToken(result), token.Algorithm, key, wording.Printable(token.Subject), wording.Quoted(token.Audience...), audience, wording.Moment(token.Expiry, now))
	return err
}

func printRefused(w io.Writer, result relyingparty.Result, outage error) error {
	var text strings.Builder
	fmt.Fprintln(&text, "refused")
	for _, finding := range result.Findings {
		fmt.Fprintf(&text, "%s: %s\n", finding.Reason, finding.Detail)
	}
	if outage != nil {
		fmt.Fprintf(&text, "the signature was not checked: %v\n", outage)
	}
	if result.Issuer != "" {
		fmt.Fprintf(&text, "judged by issuer %s%s\n", result.Issuer, namedByToken(result))
	}
	_, err := io.WriteString(w, wording.Printable(text.String()))
	return err
}

func namedByToken(result relyingparty.Result) string {
	if !result.IssuerFromToken {
		return ""
	}
	return " (named by the token itself: require one by --issuer)"
}
