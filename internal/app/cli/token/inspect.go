package token

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/relyingparty"
	"github.com/credence-id/credence/internal/wording"
)

func newInspect(terminal *screen.Terminal) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "inspect TOKEN|FILE|-",
		Short: "Print the claims of a token, without verifying anything",
		Long: `Print the header, the claims and the times of a token. This works offline and
verifies nothing: any program can write a token with any claims.

` + tokenArgumentHelp,
		Example: `  credence token create my-app | credence token inspect -
  credence token inspect /var/run/secrets/workload-identity/my-app/token`,
		Args: command.ExactlyOne("a TOKEN, the path of a FILE with a slash in it, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := Read(terminal.In, args[0])
			if err != nil {
				return err
			}
			inspection, err := relyingparty.Inspect(token)
			if err != nil {
				return &command.Failure{Line: "error: " + err.Error(), Code: command.ExitRefused, Err: err}
			}
			if output != "text" {
				return screen.Object(terminal.Out, output, inspectionReport(inspection))
			}
			return printInspection(terminal.Out, inspection, terminal.Now(), cmd.Root().DisplayName())
		},
	}
	command.Output(cmd, &output, "What to print: text, json or yaml", "text", "json", "yaml")
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
	header, err := screen.Indented(inspection.Header)
	if err != nil {
		return err
	}
	claims, err := screen.Indented(inspection.Claims)
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
`, program, header, claims, wording.Moment(inspection.IssuedAt, now), wording.Moment(inspection.NotBefore, now), wording.Moment(inspection.Expiry, now))
	return err
}
