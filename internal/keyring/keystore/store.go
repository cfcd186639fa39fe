package keystore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/credence-id/credence/internal/keyring/keys"
)

// ErrNotFound: a store holds no ring yet.
var ErrNotFound = errors.New("no ring of keys is stored")

// ErrConflict: the stored ring has another version than the Save expected, and was not replaced. Load
// the ring and decide again. If an answer was lost on its way and a client repeated the request, the other writer may have been
// this one: then the loaded ring is the one that was to be saved.
var ErrConflict = errors.New("the stored ring was changed by another writer")

// ErrUnusable: the stored data was read, but is damaged, or not a ring at all. Repeating the read
// does not help before an admin has repaired it; every other error may be an outage.
var ErrUnusable = errors.New("the stored ring can not be used")

// Store keeps one ring. It is safe for concurrent use, also by several processes.
type Store interface {
	// Load returns the stored ring and its version, ErrNotFound or ErrUnusable. It is never older than the call. Versions
	// are opaque, and never empty.
	Load(ctx context.Context) (ring keys.Ring, version string, err error)
	// Save replaces the stored ring if its version is still the expected one, and else returns ErrConflict. The empty
	// version expects that no ring is stored. Any error but these leaves open whether the ring was replaced.
	Save(ctx context.Context, ring keys.Ring, expectedVersion string) error
}

// LoadOrBootstrap returns the stored ring and its version. In an empty store it makes the first one; of several
// processes that start at once one makes it, and the others load it.
func LoadOrBootstrap(ctx context.Context, store Store, generate keys.Generate, now time.Time) (keys.Ring, string, error) {
	ring, version, err := store.Load(ctx)
	if !errors.Is(err, ErrNotFound) {
		return ring, version, err
	}
	first, err := keys.Bootstrap(generate, now)
	if err != nil {
		return keys.Ring{}, "", fmt.Errorf("make the first ring: %w", err)
	}
	if err := store.Save(ctx, first, ""); err != nil && !errors.Is(err, ErrConflict) {
		return keys.Ring{}, "", fmt.Errorf("save the first ring: %w", err)
	}
	return store.Load(ctx)
}
