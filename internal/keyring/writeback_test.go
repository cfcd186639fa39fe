package keyring_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// lossy is a store that can lose its ring, and is given an old copy.
type lossy struct {
	keystore.Store
	folder string
}

func newLossy(t *testing.T) lossy {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "keys")
	directory := testkit.Need(keystore.OpenDirectory(folder))(t)
	first, _ := keystoretest.Rings()
	testkit.Must(t, directory.Save(t.Context(), first, ""))
	return lossy{directory, folder}
}

func (l lossy) lose(t *testing.T) {
	t.Helper()
	testkit.Must(t, os.Remove(filepath.Join(l.folder, "ring.json")))
}

// putBack stores a ring in place of another.
func (l lossy) putBack(t *testing.T, ring keys.Ring) {
	t.Helper()
	_, version, err := l.Load(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, l.Save(t.Context(), ring, version))
}

// replica is the memory of one server that keeps a store.
func (l lossy) replica(t *testing.T, outside *remembered) *keyring.Remembering {
	t.Helper()
	return &keyring.Remembering{Store: l.Store, Outside: outside.recall, WriteBack: true}
}

func load(t *testing.T, store keystore.Store) keys.Ring {
	t.Helper()
	ring, _, err := store.Load(t.Context())
	testkit.Must(t, err)
	return ring
}

// revoke revokes the active key of RS256 by a replica.
func revoke(t *testing.T, store *keyring.Remembering) keys.Ring {
	t.Helper()
	active, _ := load(t, store).Signer(identity.RS256)
	operator := keyring.Operator{
		Store: store, Clock: testingclock.NewFakePassiveClock(keystoretest.Now()), Generate: keys.NewPrivate,
		View: func(context.Context) (keys.View, error) { return keys.View{Settings: settings(t)}, nil },
	}
	testkit.Must(t, testkit.Err(operator.Do(t.Context(), operator.Revoke(keys.Command{Key: active.ID, AcceptRefusals: true, Cause: keys.Cause{By: "jane", Reason: "leaked"}}), false)))
	return load(t, store)
}

func TestLostRingIsWrittenBack(t *testing.T) {
	stored, outside := newLossy(t), &remembered{}
	a := stored.replica(t, outside)
	ring := load(t, a)
	stored.lose(t)
	if again := load(t, a); keystoretest.Diff(ring, again) != "" || again.Revision != ring.Revision {
		t.Errorf("another ring was written back:\n%s", keystoretest.Diff(ring, again))
	}
	load(t, stored)

	// Only by servers that are configured so: a folder is emptied by an admin.
	plain := &keyring.Remembering{Store: stored.Store, Outside: outside.recall}
	load(t, plain)
	stored.lose(t)
	if _, _, err := plain.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("without write-back: %v", err)
	}
	// A server that has not read the ring has nothing to write back.
	if _, _, err := stored.replica(t, outside).Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("by a server that was started since: %v", err)
	}
}

func TestOldCopyIsReplacedByTheNewestRing(t *testing.T) {
	stored, outside := newLossy(t), &remembered{}
	a := stored.replica(t, outside)
	old := load(t, a)
	newest := revoke(t, a)
	if newest.Revision <= old.Revision {
		t.Fatalf("revision %d after %d", newest.Revision, old.Revision)
	}
	stored.putBack(t, old)
	if again := load(t, a); keystoretest.Diff(newest, again) != "" || len(again.Compromised) != 1 {
		t.Errorf("after an old copy was put back:\n%s", keystoretest.Diff(newest, again))
	}
	load(t, stored)

	// An operator has consented to the old copy: it stays, and signs nothing before it has been resumed.
	old.Resumed = &keys.Resuming{At: keystoretest.Now(), Cause: keys.Cause{By: "jane", Reason: "a restore"}}
	stored.putBack(t, old)
	if _, _, err := a.Load(t.Context()); !errors.Is(err, keyring.ErrSuperseded) {
		t.Errorf("a restored ring: %v", err)
	}
	// A ring of which the server does not know every key is no former state of its own.
	_, other := keystoretest.Rings()
	other.Revision = 0
	stored.putBack(t, other)
	if _, _, err := a.Load(t.Context()); !errors.Is(err, keyring.ErrSuperseded) {
		t.Errorf("a ring with other keys: %v", err)
	}
}

// Replica A revokes a key while replica B is cut off. The store loses the ring, A dies, and B returns.
func TestRevokedKeyIsNotWrittenBack(t *testing.T) {
	for name, outside := range map[string]struct {
		now  func(revoked keys.Ring) *remembered
		back bool
	}{
		"the revocation is remembered outside": {func(r keys.Ring) *remembered {
			return &remembered{past: keys.Past{Revoked: r.Compromised}}
		}, false},
		"only the revision is": {func(r keys.Ring) *remembered { return &remembered{past: keys.Past{Revision: r.Revision}} }, false},
		"what is remembered outside cannot be read": {func(keys.Ring) *remembered {
			return &remembered{err: errors.New("no route to host")}
		}, false},
		"nothing was revoked": {func(keys.Ring) *remembered { return &remembered{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			stored, known := newLossy(t), &remembered{}
			a, b := stored.replica(t, known), stored.replica(t, known)
			before := load(t, b)
			ring := before
			if !outside.back {
				ring = revoke(t, a)
			}
			stored.lose(t)
			*known = *outside.now(ring)
			_, _, err := b.Load(t.Context())
			if outside.back != (err == nil) {
				t.Errorf("B returns: %v", err)
			}
			if !outside.back {
				if _, _, err := stored.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
					t.Errorf("B has stored a ring: %v", err)
				}
			}
			// When A returns, its ring is stored, whatever B did.
			*known = remembered{past: keys.Past{Revoked: ring.Compromised}}
			if again := load(t, a); keystoretest.Diff(ring, again) != "" {
				t.Errorf("A returns:\n%s", keystoretest.Diff(ring, again))
			}
			if again := load(t, b); keystoretest.Diff(ring, again) != "" {
				t.Errorf("B reads:\n%s", keystoretest.Diff(ring, again))
			}
		})
	}
}
