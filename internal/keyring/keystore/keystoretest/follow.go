package keystoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/test/testkit"
)

// patience bounds the wait for an event; nothing is concluded from how long it took.
const patience = 5 * time.Minute

// runFollow tests that a replica learns what others save.
func runFollow(t *testing.T, create func(t *testing.T) (open func() keystore.Store)) {
	t.Run("a follower learns of every ring that stays", func(t *testing.T) {
		open := create(t)
		first, next := Rings()
		writer := open()
		testkit.Must(t, writer.Save(t.Context(), first, ""))
		reader := open()
		interval := time.Second
		if _, watched := reader.(keystore.Watcher); watched {
			// Then the watch must report the change.
			interval = time.Hour
		}
		began := time.Now()
		followed := follow(t, reader, interval)
		for _, want := range []keys.Ring{first, next, first} {
			got := followed.until(t, want)
			if got.readAt.Before(began) || got.readAt.After(time.Now()) {
				t.Errorf("read at %v, but it began at %v", got.readAt, began)
			}
			loaded, version, err := writer.Load(t.Context())
			testkit.Must(t, err)
			if got.version != version {
				t.Errorf("followed version %s, loaded version %s", got.version, version)
			}
			following := next
			if Diff(next, loaded) == "" {
				following = first
			}
			began = time.Now()
			testkit.Must(t, writer.Save(t.Context(), following, version))
		}
	})

	t.Run("a follower of an empty store finds the first ring", func(t *testing.T) {
		open := create(t)
		first, _ := Rings()
		followed := follow(t, open(), time.Second)
		if err := followed.error(t); !errors.Is(err, keystore.ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
		testkit.Must(t, open().Save(t.Context(), first, ""))
		followed.until(t, first)
	})
}

// seen is a report of a follower.
type seen struct {
	ring    keys.Ring
	version string
	readAt  time.Time
	err     error
}

type followed chan seen

// follow follows a store until the test ends.
func follow(t *testing.T, store keystore.Store, interval time.Duration) followed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(followed), make(chan error, 1)
	tell := func(s seen) {
		select {
		case told <- s:
		case <-ctx.Done():
		}
	}
	go func() {
		done <- keystore.Follow(ctx, store, keystore.Following{
			Interval: interval,
			Clock:    clock.RealClock{},
			Random:   func() float64 { return 0.5 },
			OnRing: func(ring keys.Ring, version string, readAt time.Time) {
				tell(seen{ring: ring, version: version, readAt: readAt})
			},
			OnError: func(err error) { tell(seen{err: err}) },
		})
	}()
	t.Cleanup(func() {
		cancel()
		testkit.Expect(t, <-done, "follow")
	})
	return told
}

// until returns the report with the wanted ring.
func (f followed) until(t *testing.T, want keys.Ring) seen {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-f:
			if got.err == nil && Diff(want, got.ring) == "" {
				return got
			}
		case <-deadline:
			t.Fatal("the follower has not reported the ring")
		}
	}
}

func (f followed) error(t *testing.T) error {
	t.Helper()
	select {
	case got := <-f:
		return got.err
	case <-time.After(patience):
		t.Fatal("the follower has reported nothing")
		return nil
	}
}
