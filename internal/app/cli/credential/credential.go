package credential

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
)

// New is "credential": the provider of exec credentials, one command for each kind of source, and what is kept.
func New(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "credential COMMAND",
		Short: "Print a credential for kubectl or another client of Kubernetes (an exec plugin)",
		Long: `Print a credential for kubectl, or for another client of Kubernetes: clients run these
commands where a kubeconfig names them in users[].user.exec. "credence kubeconfig"
writes such an entry.

Each command prints exactly one ExecCredential on standard output and nothing else; if
it fails, it prints nothing there, and the reason on standard error. The request of the
client is read from KUBERNETES_EXEC_INFO; without it, the version of the answer is
` + credential.V1 + `.

A credential is kept until it expires, in a folder of your own (mode 0700, one file for
each credential), and shared by all programs that request the same. A failed attempt
is not repeated for each retry of a client.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 a server could not be reached,
4 a person must log in or approve something first: see credence login, 129, 130 and
143 interrupted or terminated.`,
	}
	for _, kind := range provider.Kinds() {
		kept := &keptFile{}
		use := sourceUse{
			long:    "Print one ExecCredential.",
			example: func(line string) string { return "  credence credential " + line },
			run:     kept.run,
		}
		if !kind.Unkept {
			use.long += keepHelp
			use.example = func(line string) string {
				return "  credence credential " + line + "\n  credence credential " + withFlags(kind, line, "--keep /run/app/credential")
			}
			use.flags = kept.addFlags
		}
		cmd.AddCommand(newSourceCommand(terminal, kube, kind, use))
	}
	cmd.AddCommand(newCredentialStatusCommand(terminal), newCheck(terminal))
	command.Group(cmd)
	help := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if os.Getenv(credential.EnvironmentVariable) != "" {
			// A client would take the help for the credential.
			return command.Usage(cmd, "no source is given")
		}
		return help(cmd, args)
	}
	return cmd
}

// print is "credential SOURCE".
func (s *source) print(cmd *cobra.Command, args []string) error {
	info, err := provider.ExecInfo()
	if err != nil {
		return &command.Failure{Line: "error: " + err.Error(), Code: command.ExitUsage, Err: err}
	}
	got, err := s.serve(cmd, args, info, (*credential.Provider).Serve)
	if err != nil {
		return err
	}
	text, err := got.Encode(info.APIVersion)
	if err != nil {
		return err
	}
	if _, err := s.Out.Write(text); err != nil {
		return fmt.Errorf("write the credential: %w", err)
	}
	return nil
}
