package credential

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/wording"
)

// write puts the entry into the kubeconfig.
func (e *userEntry) write(entry clientcmdapi.ExecConfig) error {
	unlock, err := lockKubeconfig(e.file)
	if err != nil {
		return err
	}
	defer unlock()
	path := e.file
	// A link stays one: what it leads to is replaced. Others lock the path that they are given, which may be either.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return &command.Failure{Line: fmt.Sprintf("error: read %s: %v", e.file, err), Code: command.ExitUsage, Err: err}
		}
		unlock, err := lockKubeconfig(path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	config, mode, err := readKubeconfig(path)
	if err != nil {
		return err
	}
	if err := e.change(config, entry); err != nil {
		return err
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write %s: %w", e.file, err)
	}
	return atomicfile.Replace(path, text, mode)
}

func (e *userEntry) change(config *clientcmdapi.Config, entry clientcmdapi.ExecConfig) error {
	if _, there := config.AuthInfos[e.name]; there && !e.replace {
		return &command.Failure{
			Line: fmt.Sprintf("error: %s has a user %q already", e.file, e.name),
			Hint: "choose another name by --entry, or give --replace", Code: command.ExitUsage,
		}
	}
	user := clientcmdapi.NewAuthInfo()
	user.Exec = &entry
	config.AuthInfos[e.name] = user
	if e.forContext == "" {
		return nil
	}
	context := config.Contexts[e.forContext]
	if context == nil {
		return &command.Failure{
			Line: fmt.Sprintf("error: %s has no context %q", e.file, e.forContext),
			Hint: contextsHint(config), Code: command.ExitUsage,
		}
	}
	context.AuthInfo = e.name
	return nil
}

func contextsHint(config *clientcmdapi.Config) string {
	names := slices.Sorted(maps.Keys(config.Contexts))
	if len(names) == 0 {
		return "it has none, or is not there: give the kubeconfig of the cluster by --file"
	}
	return "it has " + wording.Printable(strings.Join(names, ", "))
}

// completeContexts offers those of the file that --file names.
func completeContexts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := clientcmd.LoadFromFile(cmd.Flag("file").Value.String())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// lockKubeconfig takes the lock that kubectl takes: a file beside it that only one can make.
func lockKubeconfig(path string) (unlock func(), err error) {
	lock := path + ".lock"
	file, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
	if errors.Is(err, fs.ErrExist) {
		return nil, &command.Failure{
			Line: fmt.Sprintf("error: %s is being changed by another program", path),
			Hint: "try again; if no program is at it, remove " + lock, Code: command.ExitUsage, Err: err,
		}
	}
	if err != nil {
		return nil, &command.Failure{Line: fmt.Sprintf("error: lock %s: %v", path, err), Code: command.ExitUsage, Err: err}
	}
	_ = file.Close()
	return func() { _ = os.Remove(lock) }, nil
}

// readKubeconfig returns a kubeconfig and the mode of its file; an empty one if the file does not exist yet.
func readKubeconfig(path string) (*clientcmdapi.Config, fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), 0o600, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, 0, &command.Failure{Line: fmt.Sprintf("error: read %s: %v", path, err), Code: command.ExitUsage, Err: err}
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		// Input that cannot be decoded may be secret, and the decoder quotes it.
		return nil, 0, &command.Failure{Line: fmt.Sprintf("error: read %s: it is not a kubeconfig", path), Code: command.ExitUsage}
	}
	return config, info.Mode().Perm(), nil
}
