package relyingparty

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/cli/token"
	"github.com/credence-id/credence/internal/relyingparty/conformance"
	"github.com/credence-id/credence/internal/wording"
)

// New is "relying-party".
func New(terminal *screen.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relying-party COMMAND",
		Short: "Check an issuer as the systems do that trust its tokens",
	}
	cmd.AddCommand(newCheck(terminal))
	return command.Group(cmd)
}

// check is "relying-party check": it checks an issuer, of whatever make.
type check struct {
	*screen.Terminal

	issuer, token, audience, caFile, output string
}

func newCheck(terminal *screen.Terminal) *cobra.Command {
	c := &check{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "check --issuer URL",
		Short: "Check an issuer, and a token of it, against what clouds, clusters and libraries accept",
		Long: `Check any issuer of tokens as its relying parties do: the URL, TLS, the discovery
document, the key set, caching, and with --token a token: claims, signature, and
the limits of clouds. Each check has a name that stays. None stops the others; one
that has nothing to look at is skipped. A warning is what some relying party
refuses, or what will hurt; it does not change the exit code.

The token stays here: it is never sent or printed. With - it is read
from standard input. Prefer that, or a file: arguments can be seen by other users
of the machine and stay in the history of the shell.

Exit codes: 0 no check failed, 1 a check failed, 2 wrong usage, 3 nothing is known,
because the issuer could not be reached or answered with an error of its own.`,
		Example: `  credence relying-party check --issuer https://identity.example.com

  # The issuer of: credence up
  credence token create my-app | credence relying-party check --issuer $ISSUER --token - --ca-file .credence/ca.crt`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	cmd.Flags().StringVar(&c.issuer, "issuer", "", "The URL of the issuer, byte for byte as relying parties are configured with it; required")
	cmd.Flags().StringVar(&c.token, "token", "", "A token of the issuer, - for standard input, or a file that holds it; default: no token is checked")
	cmd.Flags().StringVar(&c.audience, "audience", "", "The audience that the token must be for; default: any")
	cmd.Flags().StringVar(&c.caFile, "ca-file", "", connection.CAFileHelp)
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	command.CompleteFlag(cmd, "issuer", cobra.NoFileCompletions)
	command.CompleteFlag(cmd, "audience", cobra.NoFileCompletions)
	return cmd
}

func (c *check) run(cmd *cobra.Command) error {
	options, err := c.options(cmd)
	if err != nil {
		return err
	}
	stop := c.WaitingFor("the issuer's documents")
	report := conformance.Run(cmd.Context(), options)
	stop()
	if c.output != "text" {
		err = screen.Object(c.Out, c.output, conformanceReport(report))
	} else {
		err = printConformance(c.Out, report)
	}
	switch {
	case err != nil:
		return err
	case report.Verdict() == conformance.Fail:
		return &command.Failure{Code: command.ExitRefused}
	case report.Verdict() == conformance.Unknown:
		return &command.Failure{
			Line: "error: the issuer could not be checked: a server could not be reached, or answered with an error of its own",
			Hint: "nothing is known about its documents; see the checks that failed, and try again",
			Code: command.ExitOutage,
		}
	}
	return nil
}

func (c *check) options(cmd *cobra.Command) (conformance.Options, error) {
	options := conformance.Options{Issuer: c.issuer, Audience: c.audience, Clock: c.Now}
	switch flags := cmd.Flags(); {
	case c.issuer == "":
		return options, command.Usage(cmd, "--issuer is missing: give the URL of the issuer")
	case flags.Changed("audience") && c.audience == "":
		return options, command.Usage(cmd, "--audience is empty")
	case flags.Changed("audience") && !flags.Changed("token"):
		return options, command.Usage(cmd, "--audience has no effect without --token")
	}
	client, err := connection.DocumentsClient(cmd, c.caFile)
	if err != nil {
		return options, err
	}
	options.Client = client
	if cmd.Flags().Changed("token") {
		if options.Token, err = token.FromFlag(cmd, c.In, c.token); err != nil {
			return options, err
		}
		if options.Token == "" {
			return options, command.Usage(cmd, "--token: the token is empty")
		}
	}
	return options, nil
}

// conformanceReport is the JSON form of a report.
func conformanceReport(report conformance.Report) any {
	return struct {
		Issuer  string              `json:"issuer"`
		Verdict conformance.Verdict `json:"verdict"` // pass, fail or unknown
		Counts  map[string]int      `json:"counts"`
		Checks  []conformance.Check `json:"checks"`
	}{report.Issuer, report.Verdict(), counts(report), report.Checks}
}

func counts(report conformance.Report) map[string]int {
	counts := map[string]int{}
	for _, verdict := range []conformance.Verdict{conformance.Pass, conformance.Warn, conformance.Fail, conformance.Skipped} {
		counts[string(verdict)] = report.Count(verdict)
	}
	return counts
}

func printConformance(w io.Writer, report conformance.Report) error {
	width := 0
	for _, check := range report.Checks {
		width = max(width, len(check.Name))
	}
	var text strings.Builder
	for _, check := range report.Checks {
		detail := check.Detail
		if len(check.Findings) > 0 {
			details := make([]string, len(check.Findings))
			for i, finding := range check.Findings {
				details[i] = finding.Diagnosis + ": " + finding.Detail
			}
			detail = strings.Join(details, "; and ")
		}
		fmt.Fprintf(&text, "%-7s  %-*s  %s\n", check.Verdict, width, check.Name, wording.OneLine(detail))
	}
	counts := counts(report)
	fmt.Fprintf(&text, "%d checks of %s: %d passed, %d warned, %d failed, %d skipped\n",
		len(report.Checks), report.Issuer, counts["pass"], counts["warn"], counts["fail"], counts["skipped"])
	_, err := io.WriteString(w, wording.Printable(text.String()))
	return err
}
