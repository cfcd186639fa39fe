package credential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/app/provider"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/internal/wording"
)

// NewLogin is "login": a new credential, whatever is kept.
func NewLogin(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login COMMAND",
		Short: "Get a credential ahead of the clients that need it, by logging in where that is necessary",
		Long: `Log in to a source of credentials with the same words as "credence credential", and
keep the credential, so that clients get it without a prompt. One that is kept
already is replaced. Nothing secret is printed.`,
	}
	for _, kind := range provider.Kinds() {
		if kind.Unkept || kind.Lines {
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
		cmd.AddCommand(newSourceCommand(terminal, kube, kind, use))
	}
	return command.Group(cmd)
}

// logIn is "login SOURCE".
func (s *source) logIn(cmd *cobra.Command, args []string) error {
	info := credential.ExecInfo{APIVersion: credential.V1, Interactive: !s.kind.Browser || s.attended(cmd)}
	got, err := s.serve(cmd, args, info, (*credential.Provider).Renew)
	if failed, ok := errors.AsType[*command.Failure](err); ok && failed.Code == command.ExitNeedsPerson && !info.Interactive {
		failed.Hint += "\nhint: where a person reads this output and has a browser elsewhere: add --flow=device"
	}
	if err != nil {
		return err
	}
	if got.Expires.IsZero() {
		_, err = fmt.Fprintln(s.Out, "Logged in.")
	} else {
		_, err = fmt.Fprintf(s.Out, "Logged in until %s.\n", got.Expires.UTC().Format(time.RFC3339))
	}
	return err
}

// logout is "logout": what is kept is removed, and ended on the other side where that can be done.
type logout struct {
	*screen.Terminal
	all                     bool
	cacheFolder, secretFile string
}

// NewLogout is "logout".
func NewLogout(terminal *screen.Terminal) *cobra.Command {
	l := &logout{Terminal: terminal}
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
	cmd.Flags().StringVar(&l.secretFile, "client-secret-file", "", "The file with the secret of a confidential client, to revoke its tokens; with the IDs of that client alone")
	provider.CacheFolderFlag(cmd.Flags(), &l.cacheFolder)
	return cmd
}

func (l *logout) run(cmd *cobra.Command, args []string) error {
	if l.all == (len(args) > 0) {
		return command.Usage(cmd, "wanted are IDs of what to forget, or --all")
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
				return command.Usage(cmd, err.Error())
			}
			chosen = append(chosen, kept)
		}
		list = chosen
	}
	if clients := clientsOf(list); l.secretFile != "" && (l.all || len(clients) > 1) {
		return command.Usage(cmd, "--client-secret-file has the secret of one client, which must go to the provider of that alone: give the IDs of one of: "+strings.Join(clients, ", "))
	}
	var failed error
	for _, kept := range list {
		if err := l.forget(cmd, folder, kept); err != nil {
			if failed != nil {
				command.PrintError(l.ErrOut, failed)
			}
			failed = err
		}
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(l.Out, "Nothing is kept.")
		return err
	}
	return failed
}

// clientsOf are the clients of logins, with the providers that their secrets are for.
func clientsOf(list []credential.Kept) []string {
	var clients []string
	for _, kept := range list {
		if kept.Key["source"] == "oidc" {
			clients = append(clients, wording.OneLine(kept.Key["clientID"]+" of "+kept.Key["issuer"]))
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients)
}

// forget removes one first: what cannot be revoked must not stay because of that.
func (l *logout) forget(cmd *cobra.Command, folder string, kept credential.Kept) error {
	entry, err := l.remove(cmd, folder, kept.Name)
	if errors.Is(err, cache.ErrBusy) {
		return &command.Failure{
			Line: fmt.Sprintf("error: %s is not forgotten: %v", shortName(kept.Name), err),
			Hint: "wait until the other process is done, or end it", Code: command.ExitOutage, Err: err,
		}
	}
	if err != nil {
		return err
	}
	if entry != nil && entry.State != nil {
		if err := revokeAtProvider(cmd.Context(), entry.Key, entry.State, l.secretFile); err != nil {
			return &command.Failure{
				Line: fmt.Sprintf("error: %s is forgotten here, but not revoked: %s", shortName(kept.Name), wording.Continued(err.Error())),
				Hint: "end the session at the provider itself", Code: command.ExitOutage, Err: err,
			}
		}
	}
	_, err = fmt.Fprintf(l.Out, "Forgotten: %s %s\n", shortName(kept.Name), wording.Printable(whom(kept.Key)))
	return err
}

// remove waits for a process that is at work on it, but not without end: it may have been stopped.
func (l *logout) remove(cmd *cobra.Command, folder string, name cache.Name) (*credential.Entry, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), credential.DefaultLockTimeout)
	defer cancel()
	defer l.WaitingFor("another process, which is at work on " + shortName(name))()
	return credential.Remove(ctx, folder, name)
}
