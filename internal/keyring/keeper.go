package keyring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// Keeping is what a Keeper needs besides what it follows.
type Keeping struct {
	Following
	// Settings have come from keys.Settings.Complete.
	Settings keys.Settings
	Generate keys.Generate
	// Surroundings returns the parties that must know a key before it signs, as of now. A party that cannot be read is a gate
	// without keys. nil: no gates.
	Surroundings func(ctx context.Context) Surroundings
	// OnRing is given every ring that was read and not changed, with its plan. nil: ignored.
	OnRing func(ctx context.Context, kept Kept)
	// OnFailure is called after each failed read. damage is why there is no ring to sign with (see Follower.Damage); nil if the
	// last good one still counts. A nil func is ignored.
	OnFailure func(ctx context.Context, damage error)
	// OnEvents is given the events of the ring since the last read, from any writer. nil: ignored.
	OnEvents func(ctx context.Context, events []keys.Event)
}

// Surroundings are those parts of keys.View that lie outside the ring.
type Surroundings struct {
	Documents *keys.Gate
	Gates     []keys.Gate
	// Again is when to read again although nothing may have changed, since a party could not be read; 0: at the next read.
	Again time.Duration
}

// Kept is a ring as the Keeper found it.
type Kept struct {
	Snapshot
	View keys.View
	Plan keys.Plan
}

// Keeper does what is due to a ring. Of several Keepers of one store, those that come second do nothing: the store lets
// one of them save. A Keeper may be stopped at any moment; the next one goes on from what is stored.
type Keeper struct {
	keeping  Keeping
	follower *Follower
	// seen is the last ring that was given to OnEvents.
	seen *keys.Ring
	// waiting reports whether another read is due because a party could not be read.
	waiting atomic.Bool
}

// NewKeeper returns a Keeper that has done nothing yet.
func NewKeeper(with Keeping) *Keeper {
	k := &Keeper{keeping: with, follower: NewFollower(with.Following)}
	k.follower.observe = k.look
	k.follower.failing = func(ctx context.Context, _ error) {
		if with.OnFailure != nil {
			with.OnFailure(ctx, k.follower.Damage())
		}
	}
	return k
}

// Follower holds the ring that is kept.
func (k *Keeper) Follower() *Follower { return k.follower }

// Run keeps the ring until ctx is done.
func (k *Keeper) Run(ctx context.Context) error { return k.follower.Run(ctx) }

// look does what is due to a ring that was just read.
func (k *Keeper) look(ctx context.Context, read Snapshot) {
	k.report(ctx, read.Ring)
	surroundings := Surroundings{}
	if k.keeping.Surroundings != nil {
		surroundings = k.keeping.Surroundings(ctx)
	}
	// The time is read last, so that all of the view was true by then.
	view := keys.View{Settings: k.keeping.Settings, Documents: surroundings.Documents, Gates: surroundings.Gates, Now: k.keeping.Clock.Now()}
	plan := read.Ring.Plan(view)
	if after := cmp.Or(surroundings.Again, withdrawal(plan)); after > 0 && k.waiting.CompareAndSwap(false, true) {
		go k.again(ctx, after)
	}
	if plan.Due(view.Now) {
		if err := k.step(ctx, read, view); err != nil {
			k.follower.Log.WarnContext(ctx, "the ring of keys was not changed as due", "err", err)
		} else {
			// A saved ring counts, and is reported, once it has been read.
			k.follower.Nudge()
			return
		}
	}
	if k.keeping.OnRing != nil {
		k.keeping.OnRing(ctx, Kept{Snapshot: read, View: view, Plan: plan})
	}
}

// withdrawal is when to check again for a revoked key that is still published; 0 without one.
func withdrawal(plan keys.Plan) time.Duration {
	if slices.ContainsFunc(plan.Conditions, func(c keys.Condition) bool { return c.Type == keys.RevokedKeyPublished }) {
		return time.Second
	}
	return 0
}

func (k *Keeper) again(ctx context.Context, after time.Duration) {
	select {
	case <-ctx.Done():
	case <-k.keeping.Clock.After(after):
		k.waiting.Store(false)
		k.follower.Nudge()
	}
}

func (k *Keeper) step(ctx context.Context, read Snapshot, view keys.View) error {
	change, err := read.Ring.Step(view, k.keeping.Generate)
	if err != nil {
		return err
	}
	if !change.Changed {
		return nil
	}
	if err := k.keeping.Store.Save(ctx, change.Ring, read.Version); err != nil && !errors.Is(err, keystore.ErrConflict) {
		return fmt.Errorf("save: %w", err)
	}
	// After a conflict the other one's ring is read, and judged anew.
	return nil
}

// report passes on the events that the ring's history has gained.
func (k *Keeper) report(ctx context.Context, ring keys.Ring) {
	before := k.seen
	k.seen = &ring
	if before == nil || k.keeping.OnEvents == nil {
		return
	}
	if events := gained(before.History, ring.History); len(events) > 0 {
		k.keeping.OnEvents(ctx, events)
	}
}

// gained are the events of after that come after the last one of before.
func gained(before, after []keys.Event) []keys.Event {
	if len(before) == 0 {
		return after
	}
	// Searched from the end: the oldest may have been dropped.
	for i := len(after) - 1; i >= 0; i-- {
		if after[i] == before[len(before)-1] {
			return slices.Clone(after[i+1:])
		}
	}
	return after
}
