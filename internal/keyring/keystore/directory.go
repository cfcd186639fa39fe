package keystore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

const lockName = ".lock"

// Directory keeps a ring in files: ring.json, and <kid>.pem for each key. The directory has mode 0700, its files 0600, all
// belong to the user of this process; anything looser is refused and never repaired, since a user who could read a key once may
// still have it. Processes on one machine may share a directory.
type Directory struct{ path string }

// OpenDirectory returns the store in a directory, which is made if it does not exist.
func OpenDirectory(path string) (*Directory, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open key directory %s: %w", path, err)
	}
	err = os.Mkdir(absolute, 0o700)
	if err == nil {
		err = atomicfile.SyncFolder(filepath.Dir(absolute))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make key directory: %w", err)
	}
	if err := checkDirectory(absolute); err != nil {
		return nil, err
	}
	return &Directory{path: absolute}, nil
}

// String names the directory: "directory path".
func (d *Directory) String() string { return "directory " + d.path }

// Load implements Store. It takes no lock unless it has to, so that readers never keep a writer waiting.
func (d *Directory) Load(ctx context.Context) (keys.Ring, string, error) {
	if err := ctx.Err(); err != nil {
		return keys.Ring{}, "", fmt.Errorf("load ring from %s: %w", d.path, err)
	}
	ring, version, err := d.read()
	if err == nil || errors.Is(err, ErrNotFound) {
		return ring, version, err
	}
	// A writer may have removed a key after ring.json was read: read again under the lock.
	release, err := d.lock(ctx)
	if err != nil {
		return keys.Ring{}, "", err
	}
	defer release()
	return d.read()
}

func (d *Directory) read() (keys.Ring, string, error) {
	if err := checkDirectory(d.path); err != nil {
		return keys.Ring{}, "", err
	}
	document, err := d.document()
	if err != nil {
		return keys.Ring{}, "", err
	}
	var unread error
	ring, err := keys.Decode(document, func(id identity.KeyID) ([]byte, error) {
		data, err := readPrivate(d.file(keyName(id)))
		unread = err
		return data, err
	})
	if err != nil && (unread == nil || errors.Is(unread, fs.ErrNotExist)) {
		err = fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	if err != nil {
		return keys.Ring{}, "", fmt.Errorf("read %s: %w", d.file(documentName), err)
	}
	return ring, versionOf(document), nil
}

// Save implements Store. Key files are on disk before ring.json names them, and ring.json is replaced in one step, so
// that a crash leaves the old ring or the new one. The leftovers of a crash are removed by the next Save.
func (d *Directory) Save(ctx context.Context, ring keys.Ring, expectedVersion string) error {
	encoded, err := ring.Encode()
	if err != nil {
		return fmt.Errorf("save ring: %w", err)
	}
	release, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := d.expect(expectedVersion); err != nil {
		return err
	}
	// Under the exclusive lock no temporary file is in use: what is there was left by writers that were killed.
	if err := d.remove(atomicfile.Unfinished); err != nil {
		return err
	}
	for _, key := range ring.Keys {
		if err := d.write(keyName(key.ID), encoded.Private[key.ID]); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncFolder(d.path); err != nil {
		return err
	}
	if err := d.write(documentName, encoded.Document); err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(d.path); err != nil {
		return err
	}
	if expectedVersion == "" {
		// Keys without a ring may be those of a lost ring.json, and are needed to restore it.
		return nil
	}
	// The ring is saved whatever becomes of the keys that it no longer has: the next Save tries again.
	_ = d.removeKeysBut(encoded.Private)
	return nil
}

// expect returns ErrConflict unless the stored ring has the version.
func (d *Directory) expect(version string) error {
	stored := ""
	document, err := d.document()
	if err == nil {
		stored = versionOf(document)
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	if stored != version {
		return fmt.Errorf("save ring in %s: %w", d.path, ErrConflict)
	}
	return nil
}

// document returns the bytes of ring.json, or ErrNotFound.
func (d *Directory) document() ([]byte, error) {
	document, err := readPrivate(d.file(documentName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", d.path, ErrNotFound)
	}
	return document, err
}

func (d *Directory) file(name string) string { return filepath.Join(d.path, name) }

// versionOf is the version of a ring in a directory. Equal documents are equal rings, as a kid is a hash of its key: so a
// ring that was replaced and came back is the same ring, and a writer that did not see it go has nothing to fear.
func versionOf(document []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(document))
}

// write replaces a file in one step, unless it is there with these bytes already.
func (d *Directory) write(name string, data []byte) error {
	present, err := readPrivate(d.file(name))
	if err == nil && bytes.Equal(present, data) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Replace(d.file(name), data, 0o600)
}
