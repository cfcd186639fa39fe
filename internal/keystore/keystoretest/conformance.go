package keystore

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer/keys"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// testRings are generated once, as RSA keys are slow to make: a ring, and one that follows from it (its spare ES256 key is
// another one).
var testRings = sync.OnceValue(func() [2]keys.Ring {
	first, err := keys.Bootstrap(keys.NewPrivate, now())
	if err != nil {
		panic(err)
	}
	return [2]keys.Ring{first, withNewSpare(first)}
})

// withNewSpare returns the ring with another spare ES256 key instead of the one it has.
func withNewSpare(ring keys.Ring) keys.Ring {
	private, err := keys.NewPrivate(identity.ES256)
	if err != nil {
		panic(err)
	}
	id, err := identity.KeyIDOf(private.Public())
	if err != nil {
		panic(err)
	}
	changed := slices.Clone(ring.Keys)
	changed[3] = keys.Key{ID: id, Algorithm: identity.ES256, State: keys.Spare, Private: private, PublishedAt: now().Add(time.Hour)}
	return keys.Ring{Keys: changed}
}

// rsaOnce gives the RSA keys of a test ring to whoever asks, and new keys of other algorithms.
func rsaOnce() keys.Generate {
	var mutex sync.Mutex
	asked := 0
	return func(algorithm identity.Algorithm) (crypto.Signer, error) {
		if algorithm != identity.RS256 {
			return keys.NewPrivate(algorithm)
		}
		mutex.Lock()
		defer mutex.Unlock()
		asked++
		return testRings()[0].Keys[asked%2].Private, nil
	}
}

func sameRing(want, got keys.Ring) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b crypto.Signer) bool {
		equal, ok := a.(interface{ Equal(crypto.PrivateKey) bool })
		return ok && equal.Equal(b)
	}))
}

func ids(ring keys.Ring) string {
	var all []string
	for _, key := range ring.Keys {
		all = append(all, string(key.ID))
	}
	return strings.Join(all, " ")
}

// testStore is what every store keeps. create makes an empty store and returns a function that opens it, once for each
// replica.
func testStore(t *testing.T, create func(t *testing.T) (open func() Store)) {
	ctx := t.Context()
	rings := testRings()

	mustLoad := func(t *testing.T, store Store) (keys.Ring, string) {
		t.Helper()
		ring, version, err := store.Load(ctx)
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		if version == "" {
			t.Fatal("the version of a stored ring is empty")
		}
		return ring, version
	}
	mustSave := func(t *testing.T, store Store, ring keys.Ring, version string) {
		t.Helper()
		if err := store.Save(ctx, ring, version); err != nil {
			t.Fatalf("save: %v", err)
		}
	}
	mustHold := func(t *testing.T, store Store, want keys.Ring) {
		t.Helper()
		if got, _ := mustLoad(t, store); sameRing(want, got) != "" {
			t.Fatalf("stored ring (-want +got):\n%s", sameRing(want, got))
		}
	}

	t.Run("an empty store has no ring", func(t *testing.T) {
		store := create(t)()
		if _, _, err := store.Load(ctx); !errors.Is(err, ErrNotFound) {
			t.Errorf("load: %v, want ErrNotFound", err)
		}
		if err := store.Save(ctx, rings[0], "1"); !errors.Is(err, ErrConflict) {
			t.Errorf("save over a version that never was: %v, want ErrConflict", err)
		}
		if _, _, err := store.Load(ctx); !errors.Is(err, ErrNotFound) {
			t.Errorf("load after a refused save: %v, want ErrNotFound", err)
		}
	})

	t.Run("what is saved is loaded by every replica", func(t *testing.T) {
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
		if err := store.Save(ctx, rings[1], ""); !errors.Is(err, ErrConflict) {
			t.Errorf("first save where a ring is: %v, want ErrConflict", err)
		}
		mustHold(t, store, rings[0])
		mustSave(t, store, rings[1], first)
		if err := store.Save(ctx, rings[0], first); !errors.Is(err, ErrConflict) {
			t.Errorf("save over a stale version: %v, want ErrConflict", err)
		}
		mustHold(t, store, rings[1])
	})

	t.Run("a ring that is not valid is refused", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		_, version := mustLoad(t, store)
		err := store.Save(ctx, keys.Ring{Keys: rings[0].Keys[1:]}, version)
		if err == nil || errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "state active") {
			t.Errorf("save: %v, want what is wrong with the ring", err)
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
			candidates[i] = withNewSpare(rings[0])
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
			case !errors.Is(err, ErrConflict):
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
						t.Errorf("loaded a ring that nobody wrote: %s", got)
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
			store, generate := open(), rsaOnce()
			arrived := sync.OnceFunc(func() { empty.Done(); empty.Wait() })
			group.Go(func() {
				rings[i], _, errs[i] = LoadOrBootstrap(ctx, store, func(a identity.Algorithm) (crypto.Signer, error) {
					arrived()
					return generate(a)
				}, now())
			})
		}
		group.Wait()
		for i := range replicas {
			if errs[i] != nil {
				t.Fatalf("replica %d: %v", i, errs[i])
			}
			if diff := sameRing(rings[0], rings[i]); diff != "" {
				t.Errorf("replica %d has another ring (-first +this):\n%s", i, diff)
			}
		}
		mustHold(t, open(), rings[0])
	})

	t.Run("a stored ring is not made again", func(t *testing.T) {
		store := create(t)()
		mustSave(t, store, rings[0], "")
		got, version, err := LoadOrBootstrap(ctx, store, func(identity.Algorithm) (crypto.Signer, error) {
			return nil, errors.New("asked for a key")
		}, now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := sameRing(rings[0], got); diff != "" {
			t.Errorf("ring (-want +got):\n%s", diff)
		}
		if _, want := mustLoad(t, store); version != want {
			t.Errorf("version %s, want %s", version, want)
		}
	})

	t.Run("a key that can not be made leaves the store empty", func(t *testing.T) {
		store := create(t)()
		broken := fmt.Errorf("no entropy")
		_, _, err := LoadOrBootstrap(ctx, store, func(identity.Algorithm) (crypto.Signer, error) { return nil, broken }, now())
		if !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
		if _, _, err := store.Load(ctx); !errors.Is(err, ErrNotFound) {
			t.Errorf("load: %v, want ErrNotFound", err)
		}
	})
}
