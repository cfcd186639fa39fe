package externalsignertest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/test/testkit"
)

// RunStore tests that a store keeps a ledger as a Follower needs it. open opens one and the same empty store as often as it is
// called.
func RunStore(t *testing.T, create func(t *testing.T) (open func() externalsigner.LedgerStore)) {
	first := externalsigner.Ledger{StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	second := externalsigner.Ledger{StartedAt: first.StartedAt, DataTimestamp: first.StartedAt.Add(time.Hour)}

	t.Run("where nothing is stored, the ledger is the zero one and has no version", func(t *testing.T) {
		ledger, version := load(t, create(t)())
		if diff := cmp.Diff(externalsigner.Ledger{}, ledger); diff != "" || version != "" {
			t.Errorf("version %q, ledger (-want +got):\n%s", version, diff)
		}
	})

	t.Run("what one saves all load", func(t *testing.T) {
		open := create(t)
		save(t, open(), first, "")
		ledger, version := load(t, open())
		if diff := cmp.Diff(first, ledger); diff != "" || version == "" {
			t.Errorf("version %q, ledger (-want +got):\n%s", version, diff)
		}
		save(t, open(), second, version)
		if ledger, _ := load(t, open()); cmp.Diff(second, ledger) != "" {
			t.Errorf("ledger (-want +got):\n%s", cmp.Diff(second, ledger))
		}
	})

	t.Run("a ledger that was changed is not replaced", func(t *testing.T) {
		open := create(t)
		save(t, open(), first, "")
		_, version := load(t, open())
		save(t, open(), second, version)
		for _, old := range []string{"", version} {
			if err := open().Save(t.Context(), first, old); !errors.Is(err, externalsigner.ErrConflict) {
				t.Errorf("saved over version %q: %v, want ErrConflict", old, err)
			}
		}
		if ledger, _ := load(t, open()); cmp.Diff(second, ledger) != "" {
			t.Errorf("ledger (-want +got):\n%s", cmp.Diff(second, ledger))
		}
	})

	t.Run("of many that save at once one does", func(t *testing.T) {
		open := create(t)
		save(t, open(), first, "")
		_, version := load(t, open())
		var saved atomic.Int32
		var group sync.WaitGroup
		for range 8 {
			store := open()
			group.Go(func() {
				switch err := store.Save(t.Context(), second, version); {
				case err == nil:
					saved.Add(1)
				case !errors.Is(err, externalsigner.ErrConflict):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if saved.Load() != 1 {
			t.Errorf("%d have saved", saved.Load())
		}
	})
}

func load(t *testing.T, store externalsigner.LedgerStore) (externalsigner.Ledger, string) {
	t.Helper()
	ledger, version, err := store.Load(t.Context())
	testkit.Must(t, err)
	return ledger, version
}

func save(t *testing.T, store externalsigner.LedgerStore, ledger externalsigner.Ledger, version string) {
	t.Helper()
	testkit.Must(t, store.Save(t.Context(), ledger, version))
}
