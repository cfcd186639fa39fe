package keyring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
)

// ErrSuperseded: the stored ring does not know its past: an older ring was put back, or another
// one. Nothing is signed with it until an operator has confirmed that it is the one to use.
var ErrSuperseded = errors.New("the stored ring of keys is older than what is known of it, and signs nothing: an operator of the keys puts the newest one back, or goes on with this one by credence keys initialize --accept-loss")

// outsideTimeout bounds the reading of the past outside, so that time is left to read the ring itself.
const outsideTimeout = 3 * time.Second

// Remembering is a store that gives no ring which lacks what is remembered of it.
type Remembering struct {
	keystore.Store
	// Outside is what is remembered outside of the store and this process, read before the ring is. While it can not be
	// read, the last past counts; before that, no ring is given.
	Outside func(ctx context.Context) (keys.Past, error)
	// Remember keeps outside what a ring knows, before it is given out. nil: others do.
	Remember func(past keys.Past) error
	// WriteBack has the ring that this process read last stored again where the store has lost it, or has an older one.
	WriteBack bool
	// Log reports that a ring was written back. nil: nothing is logged.
	Log *slog.Logger
	// Superseded is the error of a ring that lacks something. nil: ErrSuperseded, by which a Follower stops to use the last good ring, too.
	Superseded error

	mu      sync.Mutex
	outside *keys.Past
	// seen is what the last good ring knew.
	seen keys.Past
	// newest is the last good ring, empty before the first.
	newest keys.Ring
}

// String names the store.
func (s *Remembering) String() string { return nameOf(s.Store) }

// Load implements keystore.Store.
func (s *Remembering) Load(ctx context.Context) (keys.Ring, string, error) {
	past, current, err := s.past(ctx)
	if err != nil {
		return keys.Ring{}, "", err
	}
	ring, version, err := s.Store.Load(ctx)
	if s.WriteBack && current {
		ring, version, err = s.writeBack(ctx, past, ring, version, err)
	}
	if err != nil {
		return keys.Ring{}, "", err
	}
	if lacks := ring.Lacks(past); lacks != "" {
		return keys.Ring{}, "", fmt.Errorf("%w (%s)", cmp.Or(s.Superseded, ErrSuperseded), lacks)
	}
	if s.Remember != nil {
		if err := s.Remember(ring.Past()); err != nil {
			return keys.Ring{}, "", fmt.Errorf("remember the ring of keys: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.newest = ring.Past(), ring
	return ring, version, nil
}

// Past is all that is remembered of the ring.
func (s *Remembering) Past(ctx context.Context) (keys.Past, error) {
	past, _, err := s.past(ctx)
	return past, err
}

// past returns the past, and whether all of it was read just now.
func (s *Remembering) past(ctx context.Context) (past keys.Past, current bool, err error) {
	limited, cancel := context.WithTimeout(ctx, outsideTimeout)
	defer cancel()
	outside, err := s.Outside(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.outside = &outside
	case s.outside == nil:
		return keys.Past{}, false, fmt.Errorf("find out what is remembered of the ring of keys: %w", err)
	}
	return s.outside.Join(s.seen), err == nil, nil
}

// Watch passes on the watch of the store, if it has one; else it lasts until ctx is done.
func (s *Remembering) Watch(ctx context.Context, changed func()) error {
	if store, ok := s.Store.(keystore.Watcher); ok {
		return store.Watch(ctx, changed)
	}
	<-ctx.Done()
	return nil
}

// Resume makes the stored ring the successor of its whole past, or a new one in an empty store. Errors are those
// of Operator.Do.
func (o Operator) Resume(ctx context.Context, cause keys.Cause, dryRun bool) (Outcome, error) {
	store, ok := o.Store.(*Remembering)
	if !ok {
		return Outcome{}, errors.New("nothing is remembered of this ring of keys")
	}
	for range attempts {
		past, err := store.Past(ctx)
		if err != nil {
			return Outcome{}, err
		}
		view, err := o.View(ctx)
		if err != nil {
			return Outcome{}, err
		}
		view.Now = o.Clock.Now()
		ring, version, err := store.Store.Load(ctx)
		made := errors.Is(err, keystore.ErrNotFound)
		if made {
			ring, err = keys.Bootstrap(o.Generate, view.Now)
		}
		if err != nil {
			return Outcome{}, fmt.Errorf("load the ring of keys: %w", err)
		}
		change, err := ring.Resume(view, past, cause, o.Generate)
		if err != nil {
			return Outcome{}, err
		}
		outcome := Outcome{Before: ring, View: view, Made: made, Change: change}
		outcome.Changed = outcome.Changed || made
		if dryRun || !outcome.Changed {
			return outcome, nil
		}
		switch err := store.Store.Save(ctx, change.Ring, version); {
		case err == nil:
			if o.Done != nil {
				o.Done()
			}
			return outcome, nil
		case !errors.Is(err, keystore.ErrConflict):
			return Outcome{}, fmt.Errorf("save the ring of keys: %w: %w", ErrUnknownOutcome, err)
		}
	}
	return Outcome{}, fmt.Errorf("save the ring of keys: %w, %d times; try again", keystore.ErrConflict, attempts)
}
