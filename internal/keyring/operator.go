package keyring

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// attempts bounds how often a command is decided anew because another writer came first.
const attempts = 5

// ErrUnknownOutcome: the store did not answer, and the command may or may not have been carried out. Read the ring.
var ErrUnknownOutcome = errors.New("it is not known whether it was done")

// Operator carries out commands on a ring, at once and whether or not a Keeper runs.
type Operator struct {
	Store    keystore.Store
	Clock    clock.PassiveClock
	Generate keys.Generate
	// View gives all of a keys.View but the time.
	View func(ctx context.Context) (keys.View, error)
	// Done is called after a ring was saved. nil: ignored.
	Done func()
}

// Outcome is what became of a command.
type Outcome struct {
	// Before is the ring that the command was decided on, and View what it was decided by.
	Before keys.Ring
	View   keys.View
	// Made is set if no ring was stored, and a new one was made.
	Made bool
	keys.Change
}

// Command is a decision on a ring: one of Rotate, RotateNow and Revoke of package keys.
type Command func(ring keys.Ring, view keys.View) (keys.Change, error)

// Rotate requests a rotation as soon as it is possible.
func Rotate(c keys.Command) Command {
	return func(ring keys.Ring, view keys.View) (keys.Change, error) { return ring.Rotate(view, c) }
}

// RotateNow lets the spare sign at once.
func (o Operator) RotateNow(c keys.Command) Command {
	return func(ring keys.Ring, view keys.View) (keys.Change, error) {
		return ring.RotateNow(view, c, o.Generate)
	}
}

// Revoke drops a key at once.
func (o Operator) Revoke(c keys.Command) Command {
	return func(ring keys.Ring, view keys.View) (keys.Change, error) {
		return ring.Revoke(view, c, o.Generate)
	}
}

// Do decides on the stored ring and saves what comes of it; with dryRun it only decides. Errors are *keys.Refused, those of
// the store, and ErrUnknownOutcome.
func (o Operator) Do(ctx context.Context, command Command, dryRun bool) (Outcome, error) {
	for range attempts {
		ring, version, err := o.Store.Load(ctx)
		if err != nil {
			return Outcome{}, fmt.Errorf("load the ring of keys: %w", err)
		}
		view, err := o.View(ctx)
		if err != nil {
			return Outcome{}, err
		}
		view.Now = o.Clock.Now()
		change, err := command(ring, view)
		if err != nil {
			return Outcome{}, err
		}
		// An invalid ring is not sent, so that certainly nothing was done.
		if _, err := change.Ring.Encode(); err != nil {
			return Outcome{}, fmt.Errorf("nothing was done, since the resulting ring is invalid: %w", err)
		}
		outcome := Outcome{Before: ring, View: view, Change: change}
		if dryRun || !change.Changed {
			return outcome, nil
		}
		err = o.Store.Save(ctx, change.Ring, version)
		if err == nil || o.saved(ctx, change) {
			if o.Done != nil {
				o.Done()
			}
			return outcome, nil
		}
		if !errors.Is(err, keystore.ErrConflict) {
			return Outcome{}, fmt.Errorf("save the ring of keys: %w: %w", ErrUnknownOutcome, err)
		}
	}
	return Outcome{}, fmt.Errorf("save the ring of keys: %w, %d times; try again", keystore.ErrConflict, attempts)
}

// saved reports whether a ring whose Save failed is stored all the same: an answer can be lost on its way. It checks the events, as
// no other writer makes the same key.
func (o Operator) saved(ctx context.Context, change keys.Change) bool {
	stored, _, err := o.Store.Load(ctx)
	if err != nil || len(change.Events) == 0 {
		return false
	}
	return !slices.ContainsFunc(change.Events, func(e keys.Event) bool { return !slices.Contains(stored.History, e) })
}
