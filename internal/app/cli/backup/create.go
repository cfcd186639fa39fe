package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/version"
	"github.com/credence-id/credence/internal/wording"
)

// create is "backup create".
type create struct {
	*screen.Terminal
	connection *connection.Flags
	ring       ringFlags

	recipients []string
	withRing   bool
	output     string
	keep       int
}

func newCreate(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	c := &create{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Write the identities of all namespaces, and the settings of keys, to a file",
		Long: `Write a backup: all WorkloadIdentities of the cluster with uid, labels, annotations and
subject, the relying parties and settings of the KeyRing, and which keys were revoked.
Tokens and private keys are not in it. With --ring the ring of signing keys is: then
the file must be encrypted to at least one --recipient of age.

If FILE is a folder, the file in it is named after the time, and --keep removes all
but the newest of them. An existing file is never replaced.

You need the ClusterRole credence:backup, and for the ring the Secret or folder that
has it.`,
		Example: `  credence backup create before-upgrade.backup
  credence backup create /backups --recipient age1… --ring --keep 30`,
		Args:        command.ExactlyOne("the FILE to write"),
		RunE:        func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	flags := cmd.Flags()
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	flags.StringArrayVar(&c.recipients, "recipient", nil, "Encrypt the file to this public key of age (age1…); may be repeated")
	flags.BoolVar(&c.withRing, "ring", false, "Also back up the ring of signing keys; needs --recipient")
	flags.IntVar(&c.keep, "keep", 0, "If FILE is a folder: how many of its backups to keep, the new one included; 0: all")
	c.ring.add(cmd)
	return cmd
}

func (c *create) run(cmd *cobra.Command, target string) error {
	recipients, err := c.check(cmd, target)
	if err != nil {
		return err
	}
	api, err := c.connection.Open(c.ErrOut)
	if err != nil {
		return err
	}
	found, err := read(cmd.Context(), c.Terminal, api, cmd.Root().DisplayName())
	if err != nil {
		return err
	}
	if found.issuer == "" {
		return &command.Failure{
			Line: "error: the issuer of this cluster is not known yet: the status of the KeyRing has none, and there are no identities",
			Hint: "the key controller writes it: check that credence-server controller runs", Code: command.ExitOutage,
		}
	}
	made, left := backup.New(found.issuer, found.identities, found.ring, version.Read().Version, c.Now())
	if c.withRing {
		if err := c.addRing(cmd.Context(), api, made); err != nil {
			return ringFailure("back up the ring of keys", err)
		}
	}
	content, err := made.Encode(recipients)
	if err != nil {
		return failed("write the backup", err)
	}
	file := target
	if isFolder(target) {
		file = filepath.Join(target, backupName(made.CreatedAt.Format(nameTime)))
	}
	if err := atomicfile.Create(file, content, 0o600); errors.Is(err, fs.ErrExist) {
		return failed("write the backup", fmt.Errorf("%s exists, and is not replaced", file))
	} else if err != nil {
		return failed("write the backup", err)
	}
	if len(left) > 0 {
		if _, err := fmt.Fprintf(c.ErrOut, "note: left out, as this cluster signs no tokens for their issuers: %s\n", wording.Some(left)); err != nil {
			return err
		}
	}
	print := c.Instead(c.output)
	if _, err := fmt.Fprintf(c.Out, "%s: %s of %s%s\n", file, identityCount(len(made.Identities)), made.Issuer, suffix(made)); err != nil {
		return err
	}
	if err := print(map[string]any{"file": file, "issuer": made.Issuer, "identities": len(made.Identities), "ring": c.withRing, "leftOut": left}); err != nil {
		return err
	}
	return prune(file, c.keep, len(made.Identities) == 0)
}

func (c *create) addRing(ctx context.Context, api *cluster.API, b *backup.Backup) error {
	store, err := c.ring.open(func() (*cluster.API, error) { return api, nil })
	if err != nil {
		return err
	}
	ring, _, err := store.Load(ctx)
	if err != nil {
		return err
	}
	return b.AddRing(ring)
}

// check returns the recipients, or what is wrong with the command line.
func (c *create) check(cmd *cobra.Command, target string) ([]age.Recipient, error) {
	if c.withRing && len(c.recipients) == 0 {
		return nil, command.Usage(cmd, "--ring needs --recipient: a file with signing keys must be encrypted")
	}
	if !c.withRing && c.ring.given(cmd) != "" {
		return nil, command.Usage(cmd, fmt.Sprintf("--%s has no effect without --ring", c.ring.given(cmd)))
	}
	if c.keep < 0 || c.keep > 0 && !isFolder(target) {
		return nil, command.Usage(cmd, "--keep must not be negative, and needs a folder as FILE")
	}
	if _, err := os.Lstat(target); err == nil && !isFolder(target) {
		return nil, &command.Failure{Line: fmt.Sprintf("error: %s exists, and is not replaced", target), Hint: "choose another file, or a folder", Code: command.ExitUsage}
	}
	var recipients []age.Recipient
	for _, given := range c.recipients {
		parsed, err := age.ParseRecipients(strings.NewReader(given))
		if err != nil {
			// The argument may be a private key: it is not shown.
			return nil, command.Usage(cmd, "--recipient must be a public key of age, which begins with age1")
		}
		recipients = append(recipients, parsed...)
	}
	return recipients, nil
}

// The names of backups in a folder begin and end alike, with the time between: they are in its order.
const (
	namePrefix = "credence-"
	nameSuffix = ".backup"
	nameTime   = "20060102T150405Z"
)

func backupName(time string) string { return namePrefix + time + nameSuffix }

// prune removes the oldest of the other backups in the folder of a new one, so that keep are left. It fails where that would remove
// some after a backup that is empty: the identities may be lost.
func prune(file string, keep int, empty bool) error {
	if keep == 0 {
		return nil
	}
	folder, made := filepath.Dir(file), filepath.Base(file)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return failed("look for old backups", err)
	}
	var names []string
	for _, entry := range entries {
		between, ok := strings.CutPrefix(entry.Name(), namePrefix)
		between, suffixed := strings.CutSuffix(between, nameSuffix)
		if ok && suffixed && len(between) == len(nameTime) && entry.Type().IsRegular() && entry.Name() != made {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	old := names[:max(0, len(names)-keep+1)]
	if empty && len(old) > 0 {
		return &command.Failure{
			Line: "error: the new backup has no identities: no older one is removed",
			Hint: "check what became of the identities; if none are wanted, remove the old files yourself, or leave out --keep", Code: command.ExitRefused,
		}
	}
	for _, name := range old {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			return failed("remove an old backup", err)
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func identityCount(n int) string {
	return wording.Plural(n, "identity", "identities")
}

func suffix(b *backup.Backup) string {
	if b.Ring == nil {
		return ", without the ring of keys"
	}
	return fmt.Sprintf(", and the ring of keys (%s)", wording.Some(b.Ring.KeyIDs()))
}
