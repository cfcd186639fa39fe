package cli

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/credence-id/credence/internal/app/cli/access"
	"github.com/credence-id/credence/internal/app/cli/account"
	"github.com/credence-id/credence/internal/app/cli/backup"
	"github.com/credence-id/credence/internal/app/cli/cluster"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/credential"
	"github.com/credence-id/credence/internal/app/cli/discovery"
	"github.com/credence-id/credence/internal/app/cli/doctor"
	"github.com/credence-id/credence/internal/app/cli/drift"
	"github.com/credence-id/credence/internal/app/cli/explain"
	"github.com/credence-id/credence/internal/app/cli/get"
	"github.com/credence-id/credence/internal/app/cli/gmsa"
	"github.com/credence-id/credence/internal/app/cli/identity"
	"github.com/credence-id/credence/internal/app/cli/keys"
	"github.com/credence-id/credence/internal/app/cli/migrate"
	"github.com/credence-id/credence/internal/app/cli/profile"
	"github.com/credence-id/credence/internal/app/cli/relyingparty"
	"github.com/credence-id/credence/internal/app/cli/renew"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/cli/token"
	"github.com/credence-id/credence/internal/app/cli/trust"
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
	// CompletionTimeout is how long the completion of a word may take. 0: three seconds.
	CompletionTimeout time.Duration
	// Limiter limits the requests to API servers. nil: fifty within a second, to each of them.
	Limiter flowcontrol.RateLimiter
}

// New returns the root of the command tree. Further commands may be added to it before Run.
func New(streams genericiooptions.IOStreams, options Options) *cobra.Command {
	terminal := screen.New(streams, options.Clock, options.After)
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
	root.SetIn(terminal.In)
	root.SetOut(terminal.Out)
	root.SetErr(terminal.ErrOut)
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(flagFailure)

	kube := connection.New()
	kube.Limiter = options.Limiter
	kube.CompletionTimeout = cmp.Or(options.CompletionTimeout, kube.CompletionTimeout)
	kube.AddFlags(root.PersistentFlags())
	root.PersistentPreRunE = kube.RefuseWithoutEffect(root.PersistentFlags())
	command.CompleteFlag(root, "kube-context", kube.CompleteKubeContexts)
	command.CompleteFlag(root, "context", kube.CompleteKubeContexts)
	command.CompleteFlag(root, "namespace", kube.CompleteNamespaces)

	root.AddCommand(
		get.New(terminal, kube),
		explain.New(terminal, kube),
		renew.New(terminal, kube),
		drift.New(terminal, kube),
		doctor.New(terminal, kube),
		trust.New(terminal, kube),
		token.New(terminal, kube),
		identity.New(terminal, kube),
		keys.New(terminal, kube),
		backup.New(terminal, kube),
		discovery.New(terminal),
		relyingparty.New(terminal),
		access.New(terminal, kube),
		account.New(terminal, kube),
		cluster.New(terminal, kube),
		account.NewEnable(terminal, kube),
		profile.New(terminal, kube),
		gmsa.New(terminal, kube),
		migrate.New(terminal, kube),
		credential.NewLogin(terminal, kube),
		credential.NewLogout(terminal),
		credential.NewWhoami(terminal, kube),
		credential.NewKubeconfig(terminal, kube),
		credential.New(terminal, kube),
		newVersionCommand(terminal),
		newOptionsCommand(terminal),
	)
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil && completion != root {
		command.Group(completion)
	}
	return command.Group(root)
}

// pluginName returns what a user types to run the kubectl plugin of that file name: kubectl-credence is "kubectl
// credence". kubectl turns the dashes in what is typed into underscores.
func pluginName(program string) (string, bool) {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	plugin, ok := strings.CutPrefix(name, "kubectl-")
	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin), ok
}
