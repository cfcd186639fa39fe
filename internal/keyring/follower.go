package keyring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// DefaultInterval is how often a store is read. It allows for failures within keys.DefaultStaleness.
const DefaultInterval = 10 * time.Second

// Snapshot is the stored ring as it was read.
type Snapshot struct {
	Ring    keys.Ring
	Version string
	// ReadAt is from before the read began; it has the monotonic reading of the clock.
	ReadAt time.Time
}

// Following is what a Follower needs; every field is required but Log and Interval.
type Following struct {
	Store keystore.Store
	// Interval is the longest pause between two reads; 0 stands for DefaultInterval.
	Interval time.Duration
	Clock    clock.Clock
	// Random returns numbers in [0, 1).
	Random func() float64
	Log    *slog.Logger
}

// Follower holds the ring of a store as it was read last. It is safe for concurrent use.
type Follower struct {
	Following
	observe func(ctx context.Context, snapshot Snapshot)
	failing func(ctx context.Context, err error)

	mu      sync.Mutex
	good    *Snapshot
	failure error
	// damage is the error of the last read that found no ring to sign with, until a read finds one: an outage in between
	// mends nothing.
	damage  error
	changed chan struct{}
	now     chan struct{}
}

// NewFollower returns a Follower that has read nothing yet.
func NewFollower(with Following) *Follower {
	with.Interval = cmp.Or(with.Interval, DefaultInterval)
	if with.Log == nil {
		with.Log = slog.New(slog.DiscardHandler)
	}
	return &Follower{Following: with, changed: make(chan struct{}, 1), now: make(chan struct{}, 1)}
}

// Load reads the ring once, without changing it. It is for the start: an error keeps a program from running with keys that cannot
// be read.
func (f *Follower) Load(ctx context.Context) error {
	readAt := f.Clock.Now()
	ring, version, err := f.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("load signing keys: %w", err)
	}
	f.take(ctx, Snapshot{Ring: ring, Version: version, ReadAt: readAt})
	return nil
}

// Run reads the store again and again until ctx is done. An error is returned only for an Interval that is too short.
func (f *Follower) Run(ctx context.Context) error {
	unwatched := ""
	return keystore.Follow(ctx, nudged{f.Store, f.now}, keystore.Following{
		Interval: f.Interval, Clock: f.Clock, Random: f.Random,
		OnRing: func(ring keys.Ring, version string, readAt time.Time) {
			snapshot := Snapshot{Ring: ring, Version: version, ReadAt: readAt}
			f.take(ctx, snapshot)
			if f.observe != nil {
				f.observe(ctx, snapshot)
			}
		},
		OnError: func(err error) { f.fail(ctx, err) },
		OnUnwatched: func(err error) {
			if unwatched == err.Error() {
				return
			}
			unwatched = err.Error()
			f.Log.WarnContext(ctx, "changes of the ring of keys are noticed late: it is read again and again", "store", nameOf(f.Store), "interval", f.Interval.String(), "err", err)
		},
	})
}

// Nudge makes Run read the store soon. Callers that know of a change call it.
func (f *Follower) Nudge() {
	select {
	case f.now <- struct{}{}:
	default:
	}
}

// Changed delivers a value after the stored ring has become another one.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Newest returns the last ring that could be read, even if the store is damaged by now: published keys stay published. false
// before the first.
func (f *Follower) Newest() (Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.good == nil {
		return Snapshot{}, false
	}
	return *f.good, true
}

// Signing returns the ring to sign with and when it was read: an empty one while the stored ring is damaged or gone, since
// keys may have been revoked when it is repaired. An outage of the store makes no difference here; the ring grows old.
func (f *Follower) Signing() (keys.Ring, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.good == nil || f.damage != nil {
		return keys.Ring{}, time.Time{}
	}
	return f.good.Ring, f.good.ReadAt
}

// Failure is why the last read failed; nil if it did not.
func (f *Follower) Failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failure
}

// Damage is why a read found the stored ring missing, invalid or superseded, if none has found a good one since; else nil.
func (f *Follower) Damage() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damage
}

// Unusable returns why Signing gives no ring, in words for any caller; nil if it gives one.
func (f *Follower) Unusable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.damage == nil && f.good != nil:
		return nil
	case errors.Is(f.damage, ErrSuperseded):
		return ErrSuperseded
	case f.damage != nil:
		return errDamaged
	}
	return errNotRead
}

var (
	errDamaged = errors.New("the stored ring of keys is damaged or gone, and nothing is signed until it is mended")
	errNotRead = errors.New("the ring of keys has not been read yet")
)

// nameOf names a store without looking into it.
func nameOf(store keystore.Store) string {
	if named, ok := store.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", store)
}

func unusable(err error) bool {
	return errors.Is(err, keystore.ErrUnusable) || errors.Is(err, keystore.ErrNotFound) || errors.Is(err, ErrSuperseded)
}

func (f *Follower) take(ctx context.Context, snapshot Snapshot) {
	f.mu.Lock()
	another := f.good == nil || f.good.Version != snapshot.Version
	recovered := f.failure != nil
	f.good, f.failure, f.damage = &snapshot, nil, nil
	f.mu.Unlock()
	if recovered {
		f.Log.InfoContext(ctx, "the ring of keys can be read again", "store", nameOf(f.Store))
	}
	if another {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// fail notes why the ring could not be read. The same reason is logged once.
func (f *Follower) fail(ctx context.Context, err error) {
	f.mu.Lock()
	again := f.failure != nil && f.failure.Error() == err.Error()
	f.failure = err
	if unusable(err) {
		f.damage = err
	}
	signing := "no"
	if f.good != nil && f.damage == nil {
		signing = "until the ring is too old"
	}
	f.mu.Unlock()
	if !again {
		f.Log.WarnContext(ctx, "the ring of keys could not be read", "store", nameOf(f.Store), "err", err, "signing", signing)
	}
	if f.failing != nil {
		f.failing(ctx, err)
	}
}
