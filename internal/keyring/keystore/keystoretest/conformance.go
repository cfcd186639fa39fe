// Package keystoretest holds what every store of rings keeps, as tests that run on any of them. In goes a function that
// makes empty stores, out come test results. It is imported by tests only.
package keystoretest

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

// Run tests what every store keeps. create makes an empty store and returns a function that opens it, once for each
// replica.
func Run(t *testing.T, create func(t *testing.T) (open func() keystore.Store)) {
	ctx := t.Context()
	first, next := Rings()
	rings := [2]keys.Ring{first, next}

	mustLoad := func(t *testing.T, store keystore.Store) (keys.Ring, string) {
		t.Helper()
		ring, version, err := store.Load(ctx)
		testkit.Must(t, err, "load")
		if version == "" {
			t.Fatal("the version of a stored ring is empty")
		}
		return ring, version
	}
	mustSave := func(t *testing.T, store keystore.Store, ring keys.Ring, version string) {
		t.Helper()
		testkit.Must(t, store.Save(ctx, ring, version), "save")
	}
	mustHold := func(t *testing.T, store keystore.Store, want keys.Ring) {
		t.Helper()
		if got, _ := mustLoad(t, store); Diff(want, got) != "" {
			t.Fatalf("stored ring (-want +got):\n%s", Diff(want, got))
		}
	}

	t.Run("an empty store has no ring", func(t *testing.T) {
		store := create(t)()
		if _, _, err := store.Load(ctx); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("load: %v, want ErrNotFound", err)
		}
		if err := store.Save(ctx, rings[0], "1"); !errors.Is(err, keystore.ErrConflict) {
			t.Errorf("save over a version that never was: %v, want ErrConflict", err)
		}
		if _, _, err := store.Load(ctx); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("load after a refused save: %v, want ErrNotFound", err)
		}
	})

	t.Run("a saved ring is loaded by every replica", func(t *testing.T) {
		open := create(t)
		mustSave(t, open(), rings[0], "")
		mustHold(t, open(), rings[0])
		_, first := mustLoad(t, open())
		if _, again := mustLoad(t, open()); again != first {
			t.Errorf("the version went from %s to %s, but nothing was written", first, again)
		}
		mustSave(t, open(), rings[1], first)
		mustHold(t, open(), rings[1])
		if _, second := mustLoad(t, open()); second == first {
			t.Errorf("another ring has the same version %s", first)
		}
	})

	t.Run("a save over another version changes nothing", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		_, first := mustLoad(t, store)
		if err := store.Save(ctx, rings[1], ""); !errors.Is(err, keystore.ErrConflict) {
			t.Errorf("first save where a ring is: %v, want ErrConflict", err)
		}
		mustHold(t, store, rings[0])
		mustSave(t, store, rings[1], first)
		if err := store.Save(ctx, rings[0], first); !errors.Is(err, keystore.ErrConflict) {
			t.Errorf("save over a stale version: %v, want ErrConflict", err)
		}
		mustHold(t, store, rings[1])
	})

	t.Run("a ring that is not valid is refused", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		_, version := mustLoad(t, store)
		broken := rings[0]
		broken.Keys = broken.Keys[1:]
		wrong := broken.Validate()
		if wrong == nil {
			t.Fatal("a ring without an active key is valid")
		}
		err := store.Save(ctx, broken, version)
		if err == nil || errors.Is(err, keystore.ErrConflict) || !strings.Contains(err.Error(), wrong.Error()) {
			t.Errorf("save: %v, want an error with %q", err, wrong)
		}
		mustHold(t, store, rings[0])
	})

	t.Run("a context that has ended is respected", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		_, version := mustLoad(t, store)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, _, err := store.Load(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("load: %v, want context.Canceled", err)
		}
		if err := store.Save(ended, rings[1], version); !errors.Is(err, context.Canceled) {
			t.Errorf("save: %v, want context.Canceled", err)
		}
		mustHold(t, store, rings[0])
	})

	t.Run("one of many writers wins", func(t *testing.T) {
		open := create(t)
		mustSave(t, open(), rings[0], "")
		_, version := mustLoad(t, open())
		const writers = 8
		candidates := make([]keys.Ring, writers)
		for i := range candidates {
			candidates[i] = WithNewSpare(rings[0])
		}
		errs := make([]error, writers)
		start := make(chan struct{})
		var group sync.WaitGroup
		for i := range writers {
			store := open()
			group.Go(func() {
				<-start
				errs[i] = store.Save(ctx, candidates[i], version)
			})
		}
		close(start)
		group.Wait()

		var winners []keys.Ring
		for i, err := range errs {
			switch {
			case err == nil:
				winners = append(winners, candidates[i])
			case !errors.Is(err, keystore.ErrConflict):
				t.Errorf("writer %d: %v, want nil or ErrConflict", i, err)
			}
		}
		if len(winners) != 1 {
			t.Fatalf("%d writers replaced the same version, want 1", len(winners))
		}
		mustHold(t, open(), winners[0])
	})

	t.Run("readers see whole rings while writers write", func(t *testing.T) {
		open := create(t)
		mustSave(t, open(), rings[0], "")
		done := make(chan struct{})
		var group sync.WaitGroup
		for range 2 {
			store := open()
			group.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					ring, _, err := store.Load(ctx)
					if err != nil {
						t.Errorf("load: %v", err)
						return
					}
					if got := ids(ring); got != ids(rings[0]) && got != ids(rings[1]) {
						t.Errorf("loaded a ring that was never written: %s", got)
					}
				}
			})
		}
		writer := open()
		for i := range 20 {
			_, version := mustLoad(t, writer)
			mustSave(t, writer, rings[(i+1)%2], version)
		}
		close(done)
		group.Wait()
	})

	t.Run("many processes that start at once share the first ring", func(t *testing.T) {
		open := create(t)
		const replicas = 4
		// Each replica makes its keys only after all have found the store empty.
		var empty sync.WaitGroup
		empty.Add(replicas)
		rings := make([]keys.Ring, replicas)
		errs := make([]error, replicas)
		var group sync.WaitGroup
		for i := range replicas {
			store, generate := open(), RSAOnce()
			arrived := sync.OnceFunc(func() { empty.Done(); empty.Wait() })
			group.Go(func() {
				rings[i], _, errs[i] = keystore.LoadOrBootstrap(ctx, store, func(a identity.Algorithm) (crypto.Signer, error) {
					arrived()
					return generate(a)
				}, Now())
			})
		}
		group.Wait()
		for i := range replicas {
			if errs[i] != nil {
				t.Fatalf("replica %d: %v", i, errs[i])
			}
			if diff := Diff(rings[0], rings[i]); diff != "" {
				t.Errorf("replica %d has another ring (-first +this):\n%s", i, diff)
			}
		}
		mustHold(t, open(), rings[0])
	})

	t.Run("a stored ring is not made again", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		got, version, err := keystore.LoadOrBootstrap(ctx, store, func(identity.Algorithm) (crypto.Signer, error) {
			return nil, errors.New("requested a key")
		}, Now())
		testkit.Must(t, err)
		if diff := Diff(rings[0], got); diff != "" {
			t.Errorf("ring (-want +got):\n%s", diff)
		}
		if _, want := mustLoad(t, store); version != want {
			t.Errorf("version %s, want %s", version, want)
		}
	})

	t.Run("a key that can not be made leaves the store empty", func(t *testing.T) {
		store := create(t)()
		broken := fmt.Errorf("no entropy")
		_, _, err := keystore.LoadOrBootstrap(ctx, store, func(identity.Algorithm) (crypto.Signer, error) { return nil, broken }, Now())
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
		if _, _, err := store.Load(ctx); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("load: %v, want ErrNotFound", err)
		}
	})

	runFollow(t, create)
}
