package credential

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/credential/inorder"
	"github.com/credence-id/credence/internal/credential/keptfile"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
	"github.com/credence-id/credence/internal/wording"
)

// failed words the error of a source, with its exit code and what to do.
func (s *source) failed(cmd *cobra.Command, args []string, info credential.ExecInfo, err error) error {
	failed := &command.Failure{Line: "error: " + wording.Continued(err.Error()), Code: command.ExitOutage, Err: err}
	switch {
	case errors.Is(err, credential.ErrNeedsPerson):
		failed.Code = command.ExitNeedsPerson
		failed.Hint = "in a terminal: " + cmd.Root().DisplayName() + " login " + shellLine(s.line(cmd, args))
		if all, ok := errors.AsType[*inorder.Error](err); ok {
			failed.Hint = "in a terminal: " + cmd.Root().DisplayName() + " login " + shellLine(all.Login())
		}
		if info.Cluster != nil && len(info.Cluster.Config) > 0 {
			// The command line is not all that names the source.
			failed.Hint = "run the client in a terminal, where it can prompt"
		}
	case errors.Is(err, credential.ErrRefused):
		failed.Code = command.ExitRefused
	case errors.Is(err, cache.ErrUnsafe):
		failed.Code = command.ExitRefused
		failed.Hint = "look at who could have written there; then remove the folder, or choose another by --cache-folder"
	case errors.Is(err, credential.ErrNotKept):
		failed.Code = command.ExitUsage
		failed.Hint = "make the folder one that can be written, with room in it, or choose another by --cache-folder"
	case errors.Is(err, cache.ErrBusy):
		failed.Hint = "wait until the other process is done, or end it"
	case errors.Is(err, keptfile.ErrHeld):
		failed.Code = command.ExitUsage
		failed.Hint = "end the other process, or choose another file by --keep"
	case errors.Is(err, keptfile.ErrNotAFile):
		failed.Code = command.ExitUsage
		failed.Hint = "choose another file by --keep"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, kubeconfig.ErrLeadsBack):
		failed.Code = command.ExitUsage
	}
	return failed
}

// shellLine is a command line for a POSIX shell.
func shellLine(words []string) string {
	var line []string
	for _, word := range words {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:@%+,") != "" {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		line = append(line, word)
	}
	return strings.Join(line, " ")
}
