package keyring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/credence-id/credence/internal/issuer/keys"
	"github.com/credence-id/credence/internal/keystore"
)

// Keeping is what a Keeper needs besides what it follows.
type Keeping struct {
	Following
	// Settings have come from keys.Settings.Complete.
	Settings keys.Settings
	Generate keys.Generate
	// Surroundings tells who must know a key before it signs, as things are now. What can not be found out is a gate that
	// knows nothing. nil: nobody must.
	Surroundings func(ctx context.Context) Surroundings
	// OnRing is given every ring that was read and to which nothing was done, with what is to become of it. nil: nothing.
	OnRing func(ctx context.Context, kept Kept)
	// OnFailure is called after each failed read. damage is why there is no ring to sign with (see Follower.Damage); nil if the
	// last good one still counts. nil: nothing.
	OnFailure func(ctx context.Context, damage error)
	// OnEvents is given what happened to the ring since it was read before, whoever did it. nil: nothing.
	OnEvents func(ctx context.Context, events []keys.Event)
}

// Surroundings are those parts of keys.View that lie outside the ring.
type Surroundings struct {
	Documents *keys.Gate
	Gates     []keys.Gate
	// Again is when to look again although nothing may have changed, since somebody could not be asked; 0: at the next read.
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
	// seen is the last ring that OnEvents knows of.
	seen *keys.Ring
	// waiting says that a look is to come because somebody could not be asked.
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
	k.tell(ctx, read.Ring)
	surroundings := Surroundings{}
	if k.keeping.Surroundings != nil {
		surroundings = k.keeping.Surroundings(ctx)
	}
	// The time is read last: all that the view says was so by then.
	view := keys.View{Settings: k.keeping.Settings, Documents: surroundings.Documents, Gates: surroundings.Gates, Now: k.keeping.Clock.Now()}
	plan := read.Ring.Plan(view)
	if after := cmp.Or(surroundings.Again, withdrawal(plan)); after > 0 && k.waiting.CompareAndSwap(false, true) {
		go k.again(ctx, after)
	}
	if plan.Due(view.Now) {
		if err := k.step(ctx, read, view); err != nil {
			k.follower.Log.WarnContext(ctx, "what is due to the ring of keys was not done", "err", err)
		} else {
			// What was saved is what counts: it is told of when it has been read.
			k.follower.Nudge()
			return
		}
	}
	if k.keeping.OnRing != nil {
		k.keeping.OnRing(ctx, Kept{Snapshot: read, View: view, Plan: plan})
	}
}

// withdrawal is when to look again for a revoked key that is still published; 0 if none is.
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

// tell tells of the events that the ring's history has gained.
func (k *Keeper) tell(ctx context.Context, ring keys.Ring) {
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
