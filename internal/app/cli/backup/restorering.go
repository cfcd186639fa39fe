package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// restoreRing puts the ring of a backup into an empty store. With it goes the consent to go on with it, without which an API server whose
// storage is empty beside existing keys waits for one.
func restoreRing(ctx context.Context, store keystore.Store, b *backup.Backup, now time.Time, dryRun bool) (there bool, err error) {
	ring, err := b.Ring.Keys()
	if err != nil {
		return false, err
	}
	stored, _, err := store.Load(ctx)
	switch {
	case errors.Is(err, keystore.ErrNotFound):
	case err != nil:
		return false, err
	case sameRing(ring, stored):
		return true, nil
	default:
		return false, errors.New("another ring is stored there, which is newer than the backup; nothing was changed")
	}
	if dryRun {
		return false, nil
	}
	ring.Resumed = &keys.Resuming{At: now.UTC().Truncate(time.Second), Cause: keys.Cause{
		By: systemUser(), Reason: "restored from the backup of " + b.CreatedAt.Format(time.RFC3339),
	}}
	return false, store.Save(ctx, ring, "")
}

func sameRing(a, b keys.Ring) bool {
	if len(a.Keys) != len(b.Keys) {
		return false
	}
	for i := range a.Keys {
		if a.Keys[i].ID != b.Keys[i].ID || a.Keys[i].State != b.Keys[i].State {
			return false
		}
	}
	return len(a.Compromised) == len(b.Compromised)
}

// systemUser names the user who runs the program, as the operating system knows them.
func systemUser() string {
	if current, err := user.Current(); err == nil && current.Username != "" {
		return current.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
