package credential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/credence-id/credence/internal/credential/cache"
)

// Kept is one credential that is kept, without its secrets.
type Kept struct {
	Name cache.Name
	// Key names the credential; nil if the file cannot be read.
	Key map[string]string
	// Token and Certificate report which parts it has.
	Token, Certificate bool
	// Obtained and Expires are zero if they are unknown.
	Obtained, Expires time.Time
	// Renewable reports whether there is a state, such as a refresh token, with which the source may get a new one without a person.
	Renewable bool
	Failure   *Failure
	// Problem is why the file is not used; nil if it is.
	Problem error
}

// errUnfinished: only a part of the credential is there, which may be secret.
var errUnfinished = errors.New("the process that got it was killed before it was kept")

// unfinished reports whether a name has no stored file and no process at work on it.
func unfinished(folder *cache.Folder, name cache.Name) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is tried once
	lock, err := folder.Lock(ctx, name, cache.Wait{Patience: DefaultPatience})
	if err != nil {
		return !errors.Is(err, cache.ErrBusy)
	}
	defer lock.Release()
	entry, err := (&turn{folder: folder, name: name}).load() // a process may have been done a moment ago
	return entry == nil && err == nil
}

// List lists what is kept in a folder, by name. A folder that does not exist keeps nothing, and is not made.
func List(path string) ([]Kept, error) {
	folder, err := openExisting(path)
	if folder == nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Names()
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, name := range names {
		entry, err := (&turn{folder: folder, name: name}).load()
		switch {
		case err != nil:
			list = append(list, Kept{Name: name, Problem: err})
		case entry == nil:
			if unfinished(folder, name) {
				list = append(list, Kept{Name: name, Problem: errUnfinished})
			}
		default:
			list = append(list, Kept{
				Name: name, Key: entry.Key, Token: !entry.Credential.Token.IsZero(), Certificate: len(entry.Credential.CertificatePEM) > 0,
				Obtained: entry.Obtained, Expires: entry.Credential.Expires, Renewable: entry.State != nil, Failure: entry.Failure,
			})
		}
	}
	return list, nil
}

// Remove removes what is kept under a name, with the state of the source, and returns it, so that it can be ended on the
// other side as well; nil if nothing of use was kept. It waits until ctx ends for a process that is at work on it.
func Remove(ctx context.Context, path string, name cache.Name) (*Entry, error) {
	folder, err := openExisting(path)
	if folder == nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	lock, err := folder.Lock(ctx, name, cache.Wait{Patience: DefaultLockTimeout})
	if err != nil {
		return nil, fmt.Errorf("remove %s: %w", name, err)
	}
	entry, _ := (&turn{folder: folder, name: name}).load()
	return entry, lock.Remove()
}

func openExisting(path string) (*cache.Folder, error) {
	folder, err := cache.OpenExisting(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return folder, err
}
