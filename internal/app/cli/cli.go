package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/version"
)

// Options are what the command tree needs besides the streams. The zero value is fit for use.
type Options struct {
	// Program is the name that the program was started by, os.Args[0]. Where it starts with kubectl-, usage and hints name
	// the kubectl plugin instead.
	Program string
	// Clock returns the time. nil: time.Now.
	Clock func() time.Time
	// After calls a function once a time has passed, unless stopped. nil: time.AfterFunc.
	After func(time.Duration, func()) (stop func() bool)
}

// terminal is the input, output and clock of every command.
type terminal struct {
	in     io.Reader
	out    io.Writer
	errOut io.Writer // guarded: shows no token
	// atTerminal is true if a person types what is read, or reads what is written to errOut, at a terminal.
	atTerminal bool
	now        func() time.Time
	after      func(time.Duration, func()) (stop func() bool)
}

// New returns the root of the command tree. Further commands may be added to it before Run.
func New(streams genericiooptions.IOStreams, options Options) *cobra.Command {
	terminal := newTerminal(streams, options)
	root := &cobra.Command{
		Use:   "credence COMMAND",
		Short: "Give workloads an identity once, and make every system that they talk to know it",
		Long: `Credence gives a Kubernetes workload its identity once, and makes every system
that it talks to know it: cloud APIs, directory services, the Kubernetes API.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 a server could not be reached, 4 a
person must log in first.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Read().String(),
	}
	root.SetVersionTemplate("credence {{.Version}}\n")
	if plugin, ok := pluginName(options.Program); ok {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: plugin}
	}
	root.SetIn(terminal.in)
	root.SetOut(terminal.out)
	root.SetErr(terminal.errOut)
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(flagFailure)

	connection := newConnection()
	connection.addFlags(root.PersistentFlags())
	root.PersistentPreRunE = connection.refuseWithoutEffect(root.PersistentFlags())
	completeFlag(root, "kube-context", connection.completeKubeContexts)
	completeFlag(root, "context", connection.completeKubeContexts)

	root.AddCommand(newTokenCommand(terminal, connection), newKeysCommand(terminal, connection), newDiscoveryCommand(terminal),
		newRelyingPartyCommand(terminal), newTrustCommand(terminal, connection), newGetCommand(terminal, connection), newDoctorCommand(terminal, connection), newExplainCommand(terminal, connection), newGMSACommand(terminal, connection),
		newCredentialCommand(terminal, connection), newLoginCommand(terminal, connection), newLogoutCommand(terminal), newWhoamiCommand(terminal, connection), newKubeconfigCommand(terminal, connection), newVersionCommand(terminal), newOptionsCommand(terminal))
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil && completion != root {
		asGroup(completion)
	}
	return asGroup(root)
}

func newTerminal(streams genericiooptions.IOStreams, options Options) *terminal {
	terminal := &terminal{
		in: streams.In, out: streams.Out, errOut: &guard{to: streams.ErrOut},
		now: options.Clock, after: options.After, atTerminal: isTerminal(streams.In) || isTerminal(streams.ErrOut),
	}
	if terminal.now == nil {
		terminal.now = time.Now
	}
	if terminal.after == nil {
		terminal.after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return terminal
}

// isTerminal reports whether a stream, which may not be a file, is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// pluginName returns what a user types to run the kubectl plugin of that file name: kubectl-credence is "kubectl
// credence". kubectl turns the dashes in what is typed into underscores.
func pluginName(program string) (string, bool) {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	plugin, ok := strings.CutPrefix(name, "kubectl-")
	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin), ok
}

// asGroup makes cmd a command that only groups others: alone it prints its help, and an unknown subcommand is an error.
func asGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.DisableFlagsInUseLine = true
	return cmd
}

func newTokenCommand(terminal *terminal, connection *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token COMMAND",
		Short: "Create, inspect and verify tokens",
	}
	cmd.AddCommand(newCreateCommand(terminal, connection), newInspectCommand(terminal), newVerifyCommand(terminal))
	return asGroup(cmd)
}
