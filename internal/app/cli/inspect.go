package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/credence-id/credence/internal/relyingparty"
)

func newInspectCommand(terminal *terminal) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "inspect TOKEN|FILE|-",
		Short: "Print the claims of a token, without verifying anything",
		Long: `Print the header, the claims and the times of a token. This works offline and
verifies nothing: any program can write a token with any claims.

` + tokenArgumentHelp,
		Example: `  credence token create my-app | credence token inspect -
  credence token inspect /var/run/secrets/workload-identity/my-app/token`,
		Args: exactlyOne("a TOKEN, the path of a FILE with a slash in it, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "output", output, "text", "json", "yaml"); err != nil {
				return err
			}
			token, err := terminal.readToken(args[0])
			if err != nil {
				return err
			}
			inspection, err := relyingparty.Inspect(token)
			if err != nil {
				return &failure{line: "error: " + err.Error(), code: exitRefused, err: err}
			}
			if output != "text" {
				return printObject(terminal.out, output, inspectionReport(inspection))
			}
			return printInspection(terminal.out, inspection, terminal.now(), cmd.Root().DisplayName())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "What to print: text, json or yaml")
	completeFlag(cmd, "output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// inspectionReport is the JSON form of an inspection; verified is always false.
func inspectionReport(inspection relyingparty.Inspection) any {
	return struct {
		Verified  bool            `json:"verified"`
		Header    json.RawMessage `json:"header"`
		Claims    json.RawMessage `json:"claims"`
		IssuedAt  *time.Time      `json:"issuedAt,omitempty"`
		NotBefore *time.Time      `json:"notBefore,omitempty"`
		ExpiresAt *time.Time      `json:"expiresAt,omitempty"`
	}{
		Header: inspection.Header, Claims: inspection.Claims,
		IssuedAt: ifSet(inspection.IssuedAt), NotBefore: ifSet(inspection.NotBefore), ExpiresAt: ifSet(inspection.Expiry),
	}
}

func ifSet(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func printInspection(w io.Writer, inspection relyingparty.Inspection, now time.Time, program string) error {
	header, err := indented(inspection.Header)
	if err != nil {
		return err
	}
	claims, err := indented(inspection.Claims)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `NOTHING WAS VERIFIED: any program can write a token with these claims.
To verify it: %s token verify TOKEN

header:
%s

claims:
%s

issued      %s
valid from  %s
expires     %s
`, program, header, claims, moment(inspection.IssuedAt, now), moment(inspection.NotBefore, now), moment(inspection.Expiry, now))
	return err
}

// moment words a time for people, such as 2026-07-01T12:00:00Z (5m ago).
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "(not set)"
	}
	distance := "in " + duration.HumanDuration(t.Sub(now))
	if t.Before(now) {
		distance = duration.HumanDuration(now.Sub(t)) + " ago"
	}
	return fmt.Sprintf("%s (%s)", t.Format(time.RFC3339), distance)
}
