package credential

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/wording"
)

// userEntry is "kubeconfig": the entry of a user whose credentials come from a source.
type userEntry struct {
	name, file, command, forContext string
	clusterInfo, replace            bool
}

// NewKubeconfig is "kubeconfig".
func NewKubeconfig(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubeconfig COMMAND",
		Short: "Write a user of a kubeconfig whose credentials come from Credence",
		Long: `Write the users[].user.exec entry by which kubectl, and every other client, gets its
credentials from a source: to standard output, or into a kubeconfig by --file. The
words are those of "credence credential".`,
	}
	for _, kind := range provider.Kinds() {
		entry := &userEntry{}
		cmd.AddCommand(newSourceCommand(terminal, kube, kind, sourceUse{
			long: `The entry that gets it is printed as YAML, or written by --file into a kubeconfig,
which is locked as kubectl does it, replaced at once, and keeps its mode. Paths are
made absolute. The client informs the source which cluster it is for, so that one that
refuses a credential does not count for the others; --provide-cluster-info=false
leaves that out. If --provide-cluster-info is given, that cluster's configuration may
name what the other flags do not.`,
			example: func(line string) string {
				return "  credence kubeconfig " + withFlags(kind, line, "--entry me") + "\n  credence kubeconfig " + withFlags(kind, line, "--file ~/.kube/config --for-context production")
			},
			flags: entry.addFlags,
			run:   entry.run,
		}))
	}
	return command.Group(cmd)
}

const clusterInfoFlag = "provide-cluster-info"

func (e *userEntry) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.name, "entry", "credence", "The name of the entry in users")
	flags.StringVar(&e.file, "file", "", "The kubeconfig to write it into; default: it is printed")
	flags.StringVar(&e.forContext, "for-context", "", "A context of --file that is to use the entry from now on")
	flags.StringVar(&e.command, "command", "", "The program that clients run; default: credence-credential beside this one, or else this one")
	flags.BoolVar(&e.clusterInfo, clusterInfoFlag, true, "Have clients tell the source which cluster it is for; if the flag is given, that cluster may name what the other flags do not")
	flags.BoolVar(&e.replace, "replace", false, "Replace an entry of the same name in --file")
}

func (e *userEntry) run(s *source, cmd *cobra.Command, args []string) error {
	if e.name == "" {
		return command.Usage(cmd, "--entry is empty")
	}
	if e.file == "" && (e.forContext != "" || e.replace) {
		return command.Usage(cmd, "--for-context and --replace need --file")
	}
	if flag := cmd.Flags().Lookup(clusterInfoFlag); !e.clusterInfo || !flag.Changed {
		// Where it is given, the cluster may set what is missing here.
		if _, err := s.choose(cmd, args, credential.ExecInfo{APIVersion: credential.V1}); err != nil {
			return err
		}
	}
	command, err := e.program()
	if err != nil {
		return err
	}
	entry := e.exec(s, command, s.line(cmd, args))
	if e.file == "" {
		return e.print(s, entry)
	}
	if err := e.write(entry); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "Written: user %s of %s\n", wording.Printable(e.name), wording.Printable(e.file))
	return err
}

// smallProgram is the name of the provider that starts fastest.
const smallProgram = "credence-credential"

// program is what clients run: an absolute path by default, so that it does not depend on their PATH.
func (e *userEntry) program() (string, error) {
	if e.command != "" {
		return e.command, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w; name one by --command", err)
	}
	name := smallProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	return self, nil
}

const installHint = `This user's credentials come from Credence, which is not installed here, or at another place.
Install it from https://github.com/credence-id/credence and write the entry anew: credence kubeconfig`

func (e *userEntry) exec(s *source, command string, line []string) clientcmdapi.ExecConfig {
	if name := strings.TrimSuffix(filepath.Base(command), ".exe"); name != smallProgram {
		line = append([]string{"credential"}, line...)
	}
	mode := clientcmdapi.NeverExecInteractiveMode
	if s.kind.Person {
		mode = clientcmdapi.IfAvailableExecInteractiveMode
	}
	return clientcmdapi.ExecConfig{
		Command: command, Args: line, APIVersion: credential.V1, InstallHint: installHint,
		ProvideClusterInfo: e.clusterInfo, InteractiveMode: mode,
	}
}

func (e *userEntry) print(s *source, entry clientcmdapi.ExecConfig) error {
	text, err := yaml.Marshal(map[string]any{"users": []clientcmdv1.NamedAuthInfo{{Name: e.name, AuthInfo: clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
		Command: entry.Command, Args: entry.Args, APIVersion: entry.APIVersion, InstallHint: entry.InstallHint,
		ProvideClusterInfo: entry.ProvideClusterInfo, InteractiveMode: clientcmdv1.ExecInteractiveMode(entry.InteractiveMode),
	}}}}})
	if err != nil {
		return fmt.Errorf("print the entry: %w", err)
	}
	_, err = s.Out.Write(text)
	return err
}
