package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	provider "github.com/credence-id/credence/internal/app/credential"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
)

// newLoginCommand is "login": a new credential, whatever is kept.
func newLoginCommand(terminal *terminal, connection *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login COMMAND",
		Short: "Get a credential ahead of the clients that need it, by logging in where that is necessary",
		Long: `Log in to a source of credentials with the same words as "credence credential", and
keep the credential, so that clients get it without a prompt. One that is kept
already is replaced. Nothing secret is printed.`,
	}
	for _, kind := range provider.Kinds() {
		if kind.Unkept {
			continue
		}
		use := sourceUse{
			long:    "Get a new one and keep it. Nothing secret is printed.",
			example: func(line string) string { return "  credence login " + line },
			run:     (*source).logIn,
		}
		if kind.Browser {
			use.flags = addBrowserFlag
		}
		cmd.AddCommand(newSourceCommand(terminal, connection, kind, use))
	}
	return asGroup(cmd)
}

// logIn is "login SOURCE".
func (s *source) logIn(cmd *cobra.Command, args []string) error {
	info := credential.ExecInfo{APIVersion: credential.V1, Interactive: !s.kind.Browser || s.attended(cmd)}
	got, err := s.serve(cmd, args, info, (*credential.Provider).Renew)
	if failed, ok := errors.AsType[*failure](err); ok && failed.code == exitNeedsPerson && !info.Interactive {
		failed.hint += "\nhint: where a person reads this output and has a browser elsewhere: add --flow=device"
	}
	if err != nil {
		return err
	}
	if got.Expires.IsZero() {
		_, err = fmt.Fprintln(s.out, "Logged in.")
	} else {
		_, err = fmt.Fprintf(s.out, "Logged in until %s.\n", got.Expires.UTC().Format(time.RFC3339))
	}
	return err
}

// logout is "logout": what is kept is removed, and ended on the other side where that can be done.
type logout struct {
	*terminal
	all                     bool
	cacheFolder, secretFile string
}

func newLogoutCommand(terminal *terminal) *cobra.Command {
	l := &logout{terminal: terminal}
	cmd := &cobra.Command{
		Use:   "logout [ID...]",
		Short: "Remove kept credentials, and revoke refresh tokens at their provider",
		Long: `Remove credentials that are kept, by the IDs of "credence credential status" or all of
them. Refresh tokens are also revoked at their provider, if it supports that (RFC 7009);
if it does not answer, they are removed all the same, and the exit code is 3.

Tokens and certificates that clients hold already stay valid until they expire.`,
		Example: `  credence logout 3f1c9a6b7d20
  credence logout --all`,
		RunE:              l.run,
		ValidArgsFunction: completeIDs(&l.cacheFolder),
	}
	cmd.Flags().BoolVar(&l.all, "all", false, "Remove all of them")
	cmd.Flags().StringVar(&l.secretFile, "client-secret-file", "", "The file with the secret of a confidential client, to revoke its tokens")
	provider.CacheFolderFlag(cmd.Flags(), &l.cacheFolder)
	return cmd
}

func (l *logout) run(cmd *cobra.Command, args []string) error {
	if l.all == (len(args) > 0) {
		return usageFailure(cmd, "wanted are IDs of what to forget, or --all")
	}
	folder, err := keptIn(l.cacheFolder)
	if err != nil {
		return err
	}
	list, err := credential.List(folder)
	if err != nil {
		return err
	}
	if !l.all {
		var chosen []credential.Kept
		for _, id := range args {
			kept, err := find(list, id)
			if err != nil {
				return usageFailure(cmd, err.Error())
			}
			chosen = append(chosen, kept)
		}
		list = chosen
	}
	var failed error
	for _, kept := range list {
		if err := l.forget(cmd, folder, kept); err != nil {
			if failed != nil {
				printError(l.errOut, failed)
			}
			failed = err
		}
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(l.out, "Nothing is kept.")
		return err
	}
	return failed
}

// forget removes one first: what cannot be revoked must not stay because of that.
func (l *logout) forget(cmd *cobra.Command, folder string, kept credential.Kept) error {
	entry, err := l.remove(cmd, folder, kept.Name)
	if errors.Is(err, cache.ErrBusy) {
		return &failure{
			line: fmt.Sprintf("error: %s is not forgotten: %v", shortName(kept.Name), err),
			hint: "wait until the other process is done, or end it", code: exitOutage, err: err,
		}
	}
	if err != nil {
		return err
	}
	if entry != nil && entry.State != nil {
		if err := revokeAtProvider(cmd.Context(), entry.Key, entry.State, l.secretFile); err != nil {
			return &failure{
				line: fmt.Sprintf("error: %s is forgotten here, but not revoked: %s", shortName(kept.Name), continued(err.Error())),
				hint: "end the session at the provider itself", code: exitOutage, err: err,
			}
		}
	}
	_, err = fmt.Fprintf(l.out, "Forgotten: %s %s\n", shortName(kept.Name), printable(whom(kept.Key)))
	return err
}

// remove waits for a process that is at work on it, but not without end: it may have been stopped.
func (l *logout) remove(cmd *cobra.Command, folder string, name cache.Name) (*credential.Entry, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), credential.DefaultLockTimeout)
	defer cancel()
	defer l.waitingFor("another process, which is at work on " + shortName(name))()
	return credential.Remove(ctx, folder, name)
}
