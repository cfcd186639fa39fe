package publication

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/discovery"
	"github.com/credence-id/credence/internal/identity"
)

const (
	// current is the link whose swap replaces both files at once, as in a volume that the kubelet writes.
	current = "..data"
	// versionPrefix starts the names of the folders that current points to, one after the other.
	versionPrefix = "..version-"
)

// Directory is a folder; it is created where it is missing.
type Directory string

// String names the place.
func (d Directory) String() string { return "directory " + string(d) }

// Publish implements Place: all files are replaced together or not at all.
func (d Directory) Publish(_ context.Context, issue Issue) (bool, error) {
	files := issue.data()
	if d.holds(files) {
		return false, nil
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return false, fmt.Errorf("create folder: %w", err)
	}
	version, err := os.MkdirTemp(string(d), versionPrefix)
	if err != nil {
		return false, fmt.Errorf("create version: %w", err)
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return false, fmt.Errorf("open version to readers: %w", err)
	}
	for name, content := range files {
		if err := atomicfile.Replace(filepath.Join(version, name), []byte(content), 0o644); err != nil {
			return false, err
		}
	}
	for name := range files {
		if err := d.link(filepath.Join(current, name), name); err != nil {
			return false, err
		}
	}
	if err := d.link(filepath.Base(version), current); err != nil {
		return false, err
	}
	if err := atomicfile.SyncFolder(string(d)); err != nil {
		return false, err
	}
	return true, d.sweep(filepath.Base(version))
}

// Keys implements Place.
func (d Directory) Keys(_ context.Context, issuer identity.Issuer) ([]identity.KeyID, error) {
	configuration, err := os.ReadFile(filepath.Join(string(d), discovery.ConfigurationKey))
	if err != nil {
		return nil, err
	}
	jwks, err := os.ReadFile(filepath.Join(string(d), discovery.JWKSKey))
	if err != nil {
		return nil, err
	}
	return keysIn(issuer, configuration, jwks)
}

// Standing implements Place.
func (d Directory) Standing(_ context.Context, issuer identity.Issuer) (Standing, error) {
	data := map[string]string{}
	for _, name := range []string{discovery.ConfigurationKey, discovery.JWKSKey, discovery.RevokedKey} {
		content, err := os.ReadFile(filepath.Join(string(d), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Standing{}, err
		}
		data[name] = string(content)
	}
	return standing(issuer, data), nil
}

func (d Directory) holds(files map[string]string) bool {
	for name, want := range files {
		if have, err := os.ReadFile(filepath.Join(string(d), name)); err != nil || string(have) != want {
			return false
		}
	}
	return true
}

// link makes name point to target, replacing what it was in one step.
func (d Directory) link(target, name string) error {
	path := filepath.Join(string(d), name)
	if have, err := os.Readlink(path); err == nil && have == target {
		return nil
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old link: %w", err)
	}
	if err := os.Symlink(target, fresh); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("swap link %s: %w", name, err)
	}
	return nil
}

func (d Directory) sweep(keep string) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("list versions: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, versionPrefix) && name != keep {
			if err := os.RemoveAll(filepath.Join(string(d), name)); err != nil {
				return fmt.Errorf("remove old version: %w", err)
			}
		}
	}
	return nil
}
