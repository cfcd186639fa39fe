package cli

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/credential/workloadidentity/kubeconfig"
)

// exitNeedsPerson: a person must log in, or approve something, and could not be reached.
const exitNeedsPerson = 4

// failed words the error of a source, with its exit code and what to do.
func (s *source) failed(cmd *cobra.Command, args []string, info credential.ExecInfo, err error) error {
	failed := &failure{line: "error: " + continued(err.Error()), code: exitOutage, err: err}
	switch {
	case errors.Is(err, credential.ErrNeedsPerson):
		failed.code = exitNeedsPerson
		failed.hint = "in a terminal: " + cmd.Root().DisplayName() + " login " + shellLine(s.line(cmd, args))
		if info.Cluster != nil && len(info.Cluster.Config) > 0 {
			// The command line is not all that names the source.
			failed.hint = "run the client in a terminal, where it can prompt"
		}
	case errors.Is(err, credential.ErrRefused):
		failed.code = exitRefused
	case errors.Is(err, cache.ErrUnsafe):
		failed.code = exitRefused
		failed.hint = "look at who could have written there; then remove the folder, or choose another by --cache-folder"
	case errors.Is(err, credential.ErrNotKept):
		failed.code = exitUsage
		failed.hint = "make the folder one that can be written, with room in it, or choose another by --cache-folder"
	case errors.Is(err, cache.ErrBusy):
		failed.hint = "wait until the other process is done, or end it"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, kubeconfig.ErrLeadsBack):
		failed.code = exitUsage
	}
	return failed
}

// continued indents all lines but the first: what others have put into a text, such as the names in a certificate, begins no line.
func continued(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

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
