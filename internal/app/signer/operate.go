package signer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keystore"
)

// The commands on the folder of keys need no running signer. One that runs finds what they did, and goes on from there.

func newListCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:          "list",
		Short:        "List the keys of a folder",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			store, err := openKeys(dir)
			if err != nil {
				return err
			}
			ring, _, err := store.Load(command.Context())
			if err != nil {
				return err
			}
			return list(command.OutOrStdout(), ring)
		},
	}
	keysDirFlag(command, &dir)
	return command
}

func newRotateCommand() *cobra.Command {
	var dir, reason string
	algorithm := string(identity.RS256)
	command := &cobra.Command{
		Use:   "rotate",
		Short: "Let the spare key sign as soon as everybody can know it",
		Long: `Ask for a rotation: the running signer lets the spare sign as soon as it has been published for long enough,
which is at once in most cases. Nobody refuses a token by that.`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := operate(command, dir, func(keyring.Operator) keyring.Command {
				return keyring.Rotate(keys.Command{Algorithm: identity.Algorithm(algorithm), Cause: cause(reason)})
			})
			if err == nil {
				_, err = fmt.Fprintf(command.OutOrStdout(), "the running signer rotates its %s key as soon as that may be\n", algorithm)
			}
			return err
		},
	}
	keysDirFlag(command, &dir)
	command.Flags().StringVar(&algorithm, "algorithm", algorithm, "`ALGORITHM` of the key: RS256 or ES256")
	command.Flags().StringVar(&reason, "reason", "", "why, for the history of the ring")
	return command
}

func newRevokeCommand() *cobra.Command {
	var dir, reason string
	accept := false
	command := &cobra.Command{
		Use:   "revoke KID",
		Short: "Drop a key at once",
		Long: `Drop a key at once, as it may be known to others. The spare signs, and every token of the key is refused as soon as
those who verify tokens have fetched the keys again: kube-apiserver within --keys-staleness of the signer. A spare that
they may not know yet signs later by itself; no token is signed until then, unless refusals are accepted.`,
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(command *cobra.Command, args []string) error {
			changed, err := operate(command, dir, func(o keyring.Operator) keyring.Command {
				return o.Revoke(keys.Command{Key: identity.KeyID(args[0]), AcceptRefusals: accept, Cause: cause(reason)})
			})
			if err != nil {
				return err
			}
			text := "%s is revoked\n"
			if slices.ContainsFunc(changed.Compromised, func(c keys.Compromised) bool {
				_, signs := changed.Signer(c.Algorithm)
				return c.ID == identity.KeyID(args[0]) && !signs
			}) {
				text = "%s is revoked; no key of its algorithm signs until the running signer finds the spare old enough\n"
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), text, args[0])
			return err
		},
	}
	keysDirFlag(command, &dir)
	command.Flags().StringVar(&reason, "reason", "", "why, for the history of the ring (required)")
	command.Flags().BoolVar(&accept, "accept-refusals", false, "let a spare sign that those who verify tokens may not know yet")
	return command
}

func keysDirFlag(command *cobra.Command, dir *string) {
	command.Flags().StringVar(dir, "keys-dir", "", "folder with the ring of keys (required)")
}

// openKeys opens a folder that a signer has made.
func openKeys(dir string) (*keystore.Directory, error) {
	if dir == "" {
		return nil, errors.New("--keys-dir is missing: give the folder of the signer's keys")
	}
	// A store makes a folder that is missing; here it can only be a wrong one.
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("--keys-dir: %w", err)
	}
	return keystore.OpenDirectory(dir)
}

// operate carries out a command on the ring of a folder, and returns the ring that is stored then. The settings of the
// running signer are not known here: the defaults are more careful than any that matter, and the signer does by its own
// what they leave undone.
func operate(command *cobra.Command, dir string, of func(keyring.Operator) keyring.Command) (keys.Ring, error) {
	store, err := openKeys(dir)
	if err != nil {
		return keys.Ring{}, err
	}
	ring, _, err := store.Load(command.Context())
	if err != nil {
		return keys.Ring{}, err
	}
	settings := keys.Settings{}
	for _, key := range ring.Keys {
		// A key that is activated keeps to the terms of the one before it.
		settings.MaxLifetime = max(settings.MaxLifetime, key.Terms.MaxLifetime)
		settings.Staleness = max(settings.Staleness, key.Terms.Staleness)
	}
	operator := keyring.Operator{
		Store: store, Clock: clock.RealClock{}, Generate: keys.NewPrivate,
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: settings}, nil },
	}
	outcome, err := operator.Do(command.Context(), of(operator), false)
	return outcome.Ring, err
}

func cause(reason string) keys.Cause {
	name := "an operator"
	if who, err := user.Current(); err == nil {
		name = who.Username
	}
	return keys.Cause{By: name, Reason: reason}
}

// list prints a ring, which has nothing private.
func list(out io.Writer, ring keys.Ring) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "KID\tALGORITHM\tSTATE\tPUBLISHED\tSIGNS SINCE\tLAST TOKEN EXPIRES")
	for _, public := range ring.Published() {
		i := slices.IndexFunc(ring.Keys, func(k keys.Key) bool { return k.ID == public.ID })
		key := ring.Keys[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Algorithm, key.State, when(key.PublishedAt), when(key.ActivatedAt), when(key.LastExpiry))
	}
	return table.Flush()
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
