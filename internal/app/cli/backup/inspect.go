package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/internal/wording"
)

// source is a file, and the key that decrypts it.
type source struct{ ageKey string }

func (s *source) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.ageKey, "age-key", "", "`FILE` with the private key of age that decrypts the backup, as age-keygen writes it")
}

// read returns the backup of a file.
func (s *source) read(file string) (*backup.Backup, error) {
	var decryption []age.Identity
	if s.ageKey != "" {
		key, err := os.Open(s.ageKey)
		if err != nil {
			return nil, failed("read --age-key", err)
		}
		defer func() { _ = key.Close() }()
		if decryption, err = age.ParseIdentities(key); err != nil {
			// The error may have a part of the key.
			return nil, failed("read --age-key", fmt.Errorf("%s has no private key of age, which begins with AGE-SECRET-KEY-", s.ageKey))
		}
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, failed("read the backup", err)
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, backup.MaxSize))
	if err != nil {
		return nil, failed("read the backup", err)
	}
	b, err := backup.Decode(content, decryption)
	if err == nil {
		return b, nil
	}
	failure := &command.Failure{Line: fmt.Sprintf("error: read the backup %s: %v", file, err), Code: command.ExitUsage, Err: err}
	switch {
	case errors.Is(err, backup.ErrEncrypted):
		failure.Hint = "give the file with the private key by --age-key"
	case errors.Is(err, backup.ErrRecipient):
		failure.Hint = fmt.Sprintf("%s has no key of a recipient: give another file by --age-key", s.ageKey)
	case errors.Is(err, backup.ErrDamaged):
		failure.Hint = "use another copy, or another backup"
	}
	return nil, failure
}

// inspect is "backup inspect".
type inspect struct {
	*screen.Terminal
	source

	output string
}

func newInspect(terminal *screen.Terminal) *cobra.Command {
	i := &inspect{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is in a backup",
		Long: `Check a backup, and show what is in it: issuer, time, identities with the account and
the hosts that their tokens are for, and the keys of the ring if it is in it. Private keys are not shown. No cluster is needed.`,
		Example: `  credence backup inspect before-upgrade.backup
  credence backup inspect credence.backup --age-key key.txt -o json`,
		Args: command.ExactlyOne("the FILE of a backup"),
		RunE: func(_ *cobra.Command, args []string) error { return i.run(args[0]) },
	}
	i.add(cmd)
	command.Output(cmd, &i.output, "What to print: table, json or yaml", "table", "json", "yaml")
	return cmd
}

func (i *inspect) run(file string) error {
	b, err := i.read(file)
	if err != nil {
		return err
	}
	keys := "not in the backup"
	if b.Ring != nil {
		keys = wording.Some(b.Ring.KeyIDs())
		b.Ring.Private = nil
	}
	if i.output != "table" {
		return screen.Object(i.Out, i.output, b)
	}
	if err := screen.Table(i.Out,
		[]string{"Issuer:", b.Issuer}, []string{"Created:", b.CreatedAt.Format(time.RFC3339) + " by credence " + b.Program},
		[]string{"Identities:", fmt.Sprint(len(b.Identities))}, []string{"Relying parties:", fmt.Sprint(len(b.KeyRing.RelyingParties))},
		[]string{"Ring of keys:", keys},
	); err != nil || len(b.Identities) == 0 {
		return err
	}
	rows := [][]string{{"NAMESPACE", "NAME", "TYPE", "AUDIENCES", "SUBJECT", "ACCOUNT"}}
	for _, wi := range b.Identities {
		system := wi.Spec.TargetSystem
		rows = append(rows, []string{wi.Namespace, wi.Name, system.Type, strings.Join(wi.Spec.Audiences, ","), wi.Status.Sub, wording.OrDash(account(system))})
	}
	if _, err := fmt.Fprintln(i.Out); err != nil {
		return err
	}
	return screen.Table(i.Out, rows...)
}
