package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/relyingparty"
)

// verify is "token verify": it judges a token as a relying party would.
type verify struct {
	*terminal

	issuer, audience, caFile, output string
}

func newVerifyCommand(terminal *terminal) *cobra.Command {
	v := &verify{terminal: terminal}
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
		Args: exactlyOne("a TOKEN, the path of a FILE with a slash in it, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd, args[0]) },
	}
	cmd.Flags().StringVar(&v.issuer, "issuer", "", "The https URL of the issuer that the token must be of; default: the one that the token names")
	cmd.Flags().StringVar(&v.audience, "audience", "", "The audience that the token must be for; default: any")
	cmd.Flags().StringVar(&v.caFile, "ca-file", "", "A PEM file of the certificate authorities to trust for the issuer; default: those of this machine")
	cmd.Flags().StringVarP(&v.output, "output", "o", "text", "What to print: text, json or yaml")
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *verify) run(cmd *cobra.Command, argument string) error {
	options, err := v.options(cmd)
	if err != nil {
		return err
	}
	token, err := v.readToken(argument)
	if err != nil {
		return err
	}
	stop := v.waitingFor("the issuer's discovery documents")
	result, outage := relyingparty.Verify(cmd.Context(), token, options)
	stop()
	if err := v.print(result, outage); err != nil {
		return err
	}
	switch {
	case len(result.Findings) > 0:
		// One thing that is wrong is enough, whatever the issuer's part would have shown.
		return &failure{code: exitRefused}
	case outage != nil:
		return outageFailure(outage)
	}
	return nil
}

func (v *verify) options(cmd *cobra.Command) (relyingparty.Options, error) {
	options := relyingparty.Options{Audience: v.audience, Clock: v.now}
	if err := oneOf(cmd, "output", v.output, "text", "json", "yaml"); err != nil {
		return options, err
	}
	if cmd.Flags().Changed("audience") && v.audience == "" {
		return options, usageFailure(cmd, "--audience is empty")
	}
	if cmd.Flags().Changed("issuer") {
		issuer, err := identity.ParseIssuer(v.issuer)
		if err != nil {
			return options, usageFailure(cmd, "--issuer: "+err.Error())
		}
		options.Issuer = issuer
	}
	if !cmd.Flags().Changed("ca-file") {
		return options, nil
	}
	roots, err := readAuthorities(v.caFile)
	if err != nil {
		return options, usageFailure(cmd, "--ca-file: "+err.Error())
	}
	options.Client = &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	return options, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return roots, nil
}

func outageFailure(outage error) *failure {
	failed := &failure{
		line: "error: the token could not be verified: " + outage.Error(),
		hint: "nothing is known about the token: check that the issuer can be reached from here",
		code: exitOutage, err: outage,
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](outage); ok {
		failed.hint = "the issuer's certificate is not of an authority that is trusted here: name one by --ca-file FILE"
	}
	return failed
}

func (v *verify) print(result relyingparty.Result, outage error) error {
	if v.output != "text" {
		return printObject(v.out, v.output, verdict(result, outage))
	}
	if result.Valid() {
		return printValid(v.out, result, v.now())
	}
	if len(result.Findings) == 0 {
		return nil // an outage is an error, and printed as one
	}
	return printRefused(v.out, result, outage)
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
		audience = "wanted: " + quoted(result.Audience)
	}
	key := "key " + quoted(token.KeyID)
	if token.KeyID == "" {
		key = "it names no key"
	}
	_, err := fmt.Fprintf(w, `valid
issuer      %s%s
algorithm   %s (%s)
subject     %s
audience    %s (%s)
expires     %s
`, result.Issuer, namedByToken(result), token.Algorithm, key, printable(token.Subject), quoted(token.Audience...), audience, moment(token.Expiry, now))
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
	_, err := io.WriteString(w, printable(text.String()))
	return err
}

func namedByToken(result relyingparty.Result) string {
	if !result.IssuerFromToken {
		return ""
	}
	return " (named by the token itself: require one by --issuer)"
}

func quoted(values ...string) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprintf("%q", value)
	}
	return strings.Join(words, ", ")
}
