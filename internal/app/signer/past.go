package signer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/strictjson"
)

// pastFile is a file, outside of the folder of keys, with what is known of its ring: by it a signer that was restarted knows an older one. It
// holds nothing private.
type pastFile string

// past is the shape of the file.
type past struct {
	Published map[identity.KeyID]identity.Algorithm `json:"published"`
	Revoked   []revoked                             `json:"revoked,omitempty"`
}

type revoked struct {
	ID        identity.KeyID     `json:"kid"`
	Algorithm identity.Algorithm `json:"algorithm"`
	RevokedAt time.Time          `json:"revokedAt"`
	By        string             `json:"by,omitempty"`
	Reason    string             `json:"reason,omitempty"`
}

// errNothingPublished is why a file is damaged: it is written for rings, and each has keys.
var errNothingPublished = errors.New(`"published" has no keys, and the signer always writes some`)

// read returns what is known; nothing while there is no file.
func (f pastFile) read(context.Context) (keys.Past, error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(string(f)); err == nil {
			return keys.Past{}, fmt.Errorf("--past-file %s is a symbolic link to a file that does not exist: put that file back, or remove the link if the folder has the newest ring", f)
		}
		return keys.Past{}, nil
	}
	if err != nil {
		return keys.Past{}, fmt.Errorf("--past-file: %w", err)
	}
	var stored past
	err = strictjson.Known(data, &stored)
	if err == nil && len(stored.Published) == 0 {
		err = errNothingPublished
	}
	if err != nil {
		return keys.Past{}, fmt.Errorf("--past-file %s is damaged: put it back, or remove it if the folder has the newest ring: %w", f, err)
	}
	known := keys.Past{Published: stored.Published}
	for _, r := range stored.Revoked {
		known.Revoked = append(known.Revoked, keys.Compromised{
			ID: r.ID, Algorithm: r.Algorithm, RevokedAt: r.RevokedAt, Cause: keys.Cause{By: r.By, Reason: r.Reason},
		})
	}
	return known, nil
}

// write replaces what is known, if that has changed.
func (f pastFile) write(known keys.Past) error {
	stored := past{Published: known.Published}
	for _, c := range known.Revoked {
		stored.Revoked = append(stored.Revoked, revoked{c.ID, c.Algorithm, c.RevokedAt.UTC(), c.By, c.Reason})
	}
	data, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return fmt.Errorf("--past-file: %w", err)
	}
	if _, err := atomicfile.Update(string(f), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("--past-file: %w", err)
	}
	return nil
}

// in reports whether the file is in a folder, or below it, by its own name or by that of the file that it links to.
func (f pastFile) in(folder string) bool {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return true
	}
	file, err := filepath.Abs(string(f))
	if err != nil {
		return true
	}
	absolute = withoutLinks(absolute)
	for _, name := range []string{withoutLinks(file), filepath.Join(withoutLinks(filepath.Dir(file)), filepath.Base(file))} {
		if relative, err := filepath.Rel(absolute, name); err != nil || filepath.IsLocal(relative) {
			return true
		}
	}
	return false
}

// withoutLinks resolves the symbolic links of an absolute path, as far as it exists.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return cmp.Or(resolved, path)
	}
	return filepath.Join(withoutLinks(filepath.Dir(path)), filepath.Base(path))
}

var (
	errOlder = errors.New("the folder has an older ring of keys than this process has seen, and nothing is signed with it: put the newest one back, or revoke in this one what was revoked, and restart the signer")
	// errLost and errOlderThanPast are for a signer that knows its past.
	errLost          = errors.New("there are no keys, and --past-file knows of some: an operator of the keys puts the folder back, or has new ones made by credence keys initialize --keys-dir --accept-loss, and restarts the signer")
	errOlderThanPast = errors.New("the folder has an older ring of keys than --past-file knows, and nothing is signed with it: an operator of the keys puts the newest one back, or goes on with this one by credence keys initialize --keys-dir --accept-loss, and restarts the signer")
)

// remembering is the folder with what is known of its ring: an older ring that is put back revives no key that was revoked. Without a file, this
// process alone knows it.
func remembering(config Config, store keystore.Store) *keyring.Remembering {
	if config.PastFile == "" {
		nothing := func(context.Context) (keys.Past, error) { return keys.Past{}, nil }
		return &keyring.Remembering{Store: store, Outside: nothing, Superseded: errOlder}
	}
	file := pastFile(config.PastFile)
	return &keyring.Remembering{Store: store, Outside: file.read, Remember: file.write, Superseded: errOlderThanPast}
}
