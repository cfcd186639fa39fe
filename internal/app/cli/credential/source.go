package credential

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/tokenexchange/https"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeapi"
)

// source is a command for one kind of source.
type source struct {
	*screen.Terminal
	connection  *connection.Flags
	kind        provider.Kind
	settings    provider.Settings
	cacheFolder string
}

// sourceUse is what a command does with a source.
type sourceUse struct {
	long    string
	example func(line string) string
	run     func(*source, *cobra.Command, []string) error
	// flags are those besides the source's; may be nil.
	flags func(*pflag.FlagSet)
}

// withFlags adds flags to the example of a source, which a source that takes command lines has before these.
func withFlags(kind provider.Kind, line, flags string) string {
	if kind.Lines {
		return strings.Replace(line, kind.Name, kind.Name+" "+flags, 1)
	}
	return line + " " + flags
}

// clusterFlags are those that choose the cluster of a source. Others, such as --token, would be another credential.
var clusterFlags = []string{"kubeconfig", "kube-context", "context", "namespace"}

func newSourceCommand(terminal *screen.Terminal, kube *connection.Flags, kind provider.Kind, use sourceUse) *cobra.Command {
	s := &source{Terminal: terminal, connection: kube, kind: kind}
	text := sourceTexts[kind.Name]
	cmd := &cobra.Command{
		Use:     strings.TrimSpace(kind.Name + " " + kind.Argument),
		Short:   text.short,
		Long:    text.long + "\n\n" + use.long,
		Example: use.example(text.example),
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.refuseOthers(cmd); err != nil {
				return err
			}
			return use.run(s, cmd, args)
		},
	}
	s.settings = kind.Flags(cmd.Flags())
	provider.CacheFolderFlag(cmd.Flags(), &s.cacheFolder)
	if use.flags != nil {
		use.flags(cmd.Flags())
	}
	if kind.Kubeconfig {
		cmd.Annotations = map[string]string{connection.NeedsCluster: "yes"}
	}
	if kind.Argument != "" {
		// A cluster's own configuration may name it instead.
		cmd.Use = fmt.Sprintf("%s [%s]", kind.Name, kind.Argument)
		cmd.Args = cobra.MaximumNArgs(1)
	}
	if kind.Lines {
		cmd.Use = kind.Name + " -- SOURCE... -- SOURCE..."
		cmd.Args = cobra.ArbitraryArgs
		cmd.DisableFlagsInUseLine = true
	}
	s.complete(cmd)
	return cmd
}

func (s *source) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if s.kind.Name == "workload-identity" {
		cmd.ValidArgsFunction = s.connection.CompleteArgument((*cluster.API).IdentityNames)
	}
	words := map[string][]string{
		"present": {"id", "access"}, "flow": {"auto", "browser", "device"}, "authentication": {"none", "basic", "post"},
	}
	files := append([]string{"file", "keep", "command", "cache-folder"}, s.kind.Files...)
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case cmd.PersistentFlags().Lookup(flag.Name) != nil || slices.Contains(files, flag.Name):
		case s.kind.Name == "workload-identity" && flag.Name == "context":
			command.CompleteFlag(cmd, flag.Name, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return s.connection.CompleteNames(cmd.Context(), (*cluster.API).ServiceAccountNames, "serviceaccount/")
			})
		case flag.Name == "for-context":
			command.CompleteFlag(cmd, flag.Name, completeContexts)
		case words[flag.Name] != nil:
			command.CompleteFlag(cmd, flag.Name, cobra.FixedCompletions(words[flag.Name], cobra.ShellCompDirectiveNoFileComp))
		default:
			command.CompleteFlag(cmd, flag.Name, cobra.NoFileCompletions)
		}
	})
}

// refuseOthers refuses flags of kubectl that choose the user and address of a cluster: a source reads these from a kubeconfig only, since
// what is kept is found by it.
func (s *source) refuseOthers(cmd *cobra.Command) error {
	var refusal error
	cmd.InheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if refusal == nil && flag.Changed && !slices.Contains(clusterFlags, flag.Name) {
			refusal = command.Usage(cmd, fmt.Sprintf("--%s has no effect: this source connects by a kubeconfig alone", flag.Name))
		}
	})
	return refusal
}

// choose returns the source that the command line names.
func (s *source) choose(cmd *cobra.Command, args []string, info credential.ExecInfo) (provider.Chosen, error) {
	place := provider.Here(s.Now)
	place.Kubeconfig, place.Context, place.Namespace = *s.connection.Config.KubeConfig, *s.connection.Config.Context, *s.connection.Config.Namespace
	place.CacheFolder = s.cacheFolder
	place.Network = provider.Network{Tokens: kubeapi.Tokens, Certificates: kubeapi.Certificates, Exchange: https.Poster{}, OpenID: openID}
	chosen, err := s.settings.Choose(args, place, info)
	if err != nil {
		failed := command.Usage(cmd, err.Error())
		failed.Err = err
		return provider.Chosen{}, failed
	}
	return chosen, nil
}

type serving func(*credential.Provider, context.Context, credential.Source, credential.ExecInfo) (credential.Credential, error)

func (s *source) serve(cmd *cobra.Command, args []string, info credential.ExecInfo, serve serving) (credential.Credential, error) {
	chosen, err := s.choose(cmd, args, info)
	if err != nil {
		return credential.Credential{}, err
	}
	commands, err := browsers(cmd, os.Getenv)
	if err != nil {
		return credential.Credential{}, command.Usage(cmd, err.Error())
	}
	from, err := chosen.Provider(s.cacheFolder, info, s.Now, person{s.ErrOut, commands})
	if err != nil {
		return credential.Credential{}, command.Usage(cmd, err.Error())
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	got, err := serve(from, ctx, chosen, info)
	if i := interrupted(ctx); err != nil && i != nil {
		return credential.Credential{}, &command.Failure{Line: "error: " + i.Error(), Code: i.exitCode(), Err: err}
	}
	if err != nil {
		return credential.Credential{}, s.failed(cmd, args, info, err)
	}
	return got, nil
}

// line returns the words of a command line that name the same source, with the paths of files absolute.
func (s *source) line(cmd *cobra.Command, args []string) []string {
	return s.kind.Words(args, cmd.Flags())
}
