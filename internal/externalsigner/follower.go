package externalsigner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

const (
	// shortestPause is between two polls after a good one, whatever refresh hint the signer gives.
	shortestPause = 10 * time.Second
	// longestPause is between two polls; settings with a shorter staleness make it shorter.
	longestPause = 5 * time.Minute
	// firstRetry is the pause after a first failure; it doubles up to lastRetry.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 10 * time.Second
	// minPause is between two polls, however often tokens come under keys that are not known.
	minPause = 2 * time.Second
	// maxRounds bounds how often the ledger is loaded in one poll: to enter keys, to find them stored, and for conflicts.
	maxRounds = 8
	// storeTimeout is for a store that does not answer.
	storeTimeout = 10 * time.Second
)

// ErrConflict reports that the stored ledger has another version than the Save expected. It was not replaced.
var ErrConflict = errors.New("the stored ledger was changed by another writer")

// LedgerStore keeps one ledger for all replicas.
type LedgerStore interface {
	// Load returns the stored ledger, never one older than the call, and its version. Where nothing is stored it returns
	// the zero Ledger and the empty version, and no error.
	Load(ctx context.Context) (ledger Ledger, version string, err error)
	// Save replaces the stored ledger if its version is still the expected one, and else returns ErrConflict. The empty
	// version expects that nothing is stored. Any other error leaves open whether the ledger was replaced.
	Save(ctx context.Context, ledger Ledger, expectedVersion string) error
}

// Signer is what a Follower needs of a Client.
type Signer interface {
	Keys(ctx context.Context) (Announcement, error)
	MaxLifetime(ctx context.Context) (time.Duration, error)
	Sign(ctx context.Context, announced Announcement, claims []byte, accepted []identity.Algorithm) (Signed, error)
}

// Snapshot is the state of a Follower. It is replaced whole, and never edited.
type Snapshot struct {
	// Ledger was the stored one at ReadAt or later: its keys are those to publish.
	Ledger Ledger
	// Announcement is the last good one of this replica's signer. Another replica's may be newer.
	Announcement Announcement
	// MaxLifetime is the longest lifetime that the signer signs; 0 until the signer has returned it.
	MaxLifetime time.Duration
	// ReadAt is from before the reading of the ledger began.
	ReadAt time.Time
	// gates are those of the surroundings, as they were at the same time.
	gates []keys.Gate
}

// Following is what a Follower needs. Surroundings, OnSnapshot and OnError may be missing.
type Following struct {
	Signer Signer
	Store  LedgerStore
	// Settings set for how long a key is published before it signs; see keys.Settings.Wait.
	Settings keys.Settings
	// Surroundings returns the parties that must know a key before it signs, as of now: the published documents (nil if they
	// are not watched), and gates. A party whose state cannot be read is a gate without keys.
	Surroundings func(ctx context.Context) (documents *keys.Gate, gates []keys.Gate)
	// Clock gives the times of the ledger, and the pauses.
	Clock clock.Clock
	// Random returns numbers in [0, 1).
	Random func() float64
	// OnSnapshot is given every snapshot after a good poll, what the poll changed in the ledger, and a ledger that others have
	// changed while polls fail. Calls are made one at a time.
	OnSnapshot func(Snapshot, Observation)
	// OnError is given the error of each poll that failed. Calls are made one at a time.
	OnError func(error)
}

// Follower keeps the ledger up with what a signer announces, and signs. Whatever the signer or the store does, the last
// good keys stay. It is safe for concurrent use.
type Follower struct {
	Following
	snapshot atomic.Pointer[Snapshot]
	// wanted holds that a token came under a key that is not known, or nothing.
	wanted chan struct{}
}

// NewFollower returns a Follower, or an error that names the setting that is missing or contradicts another.
func NewFollower(with Following) (*Follower, error) {
	settings, err := with.Settings.Complete()
	switch {
	case err != nil:
		return nil, fmt.Errorf("follow external signer: %w", err)
	case with.Signer == nil || with.Store == nil || with.Clock == nil || with.Random == nil:
		return nil, errors.New("follow external signer: a signer, a store, a clock and randomness are needed")
	}
	with.Settings = settings
	if with.Surroundings == nil {
		with.Surroundings = func(context.Context) (*keys.Gate, []keys.Gate) { return nil, nil }
	}
	if with.OnSnapshot == nil {
		with.OnSnapshot = func(Snapshot, Observation) {}
	}
	if with.OnError == nil {
		with.OnError = func(error) {}
	}
	return &Follower{Following: with, wanted: make(chan struct{}, 1)}, nil
}

// Snapshot returns the current state; false until a ledger was stored. Its keys are to be published even while Ready returns
// an error.
func (f *Follower) Snapshot() (Snapshot, bool) {
	if snapshot := f.snapshot.Load(); snapshot != nil {
		return *snapshot, true
	}
	return Snapshot{}, false
}

// Ready returns nil once tokens can be signed and keys published, and stays so. Until then its error names what is missing.
func (f *Follower) Ready() error {
	snapshot, ok := f.Snapshot()
	switch {
	case !ok || len(snapshot.Announcement.Published) == 0:
		return refuse(ReasonNotReady, "no announcement of the external signer was taken yet")
	case snapshot.MaxLifetime == 0:
		return refuse(ReasonNotReady, "the external signer has not returned the longest lifetime of its tokens yet")
	}
	return nil
}

// SignClaims signs claims with Client.Sign, and withholds the token while relying parties may not know its key. Errors are
// *Error.
func (f *Follower) SignClaims(ctx context.Context, claims []byte, accepted []identity.Algorithm) (Signed, error) {
	if err := f.Ready(); err != nil {
		return Signed{}, err
	}
	snapshot, _ := f.Snapshot()
	signed, err := f.Signer.Sign(ctx, snapshot.Announcement, claims, accepted)
	if err == nil {
		err = snapshot.Ledger.MaySign(signed.KeyID, keys.View{Settings: f.Settings, Gates: snapshot.gates, Now: f.Clock.Now()})
	}
	if err != nil {
		f.refetchIfStale(err)
		return Signed{}, err
	}
	return signed, nil
}

// refetchIfStale polls early when an error suggests that the snapshot is stale.
func (f *Follower) refetchIfStale(err error) {
	switch reason, _ := ReasonOf(err); reason {
	case ReasonUnknownKey, ReasonExcludedKey, ReasonWrongSignature, ReasonAlgorithmOfOtherKey:
		select {
		case f.wanted <- struct{}{}:
		default:
		}
	default:
	}
}

// Run polls the signer until ctx is done: at once, then at the signer's refresh interval, soon after an error, and soon after
// a token came under an unknown key.
func (f *Follower) Run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		pause, err := f.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause, retry = retry, min(2*retry, lastRetry)
			f.OnError(err)
		default:
			retry = firstRetry
		}
		f.rest(ctx, pause-time.Duration(f.Random()*float64(pause)/4))
	}
}

// poll takes one announcement, and returns when the next one is due.
func (f *Follower) poll(ctx context.Context) (pause time.Duration, err error) {
	old, _ := f.Snapshot()
	announced, err := f.Signer.Keys(ctx)
	if err != nil {
		f.reread(ctx, old)
		return 0, err
	}
	next := Snapshot{Announcement: announced}
	observed, err := f.observe(ctx, &next)
	if err != nil {
		f.reread(ctx, old)
		return 0, err
	}
	next.MaxLifetime, err = f.Signer.MaxLifetime(ctx)
	if err != nil {
		next.MaxLifetime = old.MaxLifetime
	}
	f.take(next, observed)
	// Documents that are late by more than the staleness would make a wait too short.
	longest := min(longestPause, f.Settings.Staleness)
	return max(min(shortestPause, longest), min(announced.RefreshHint, longest)), err
}

// reread keeps up with what other replicas have stored, while this one's signer gives nothing to enter.
func (f *Follower) reread(ctx context.Context, old Snapshot) {
	readAt := f.Clock.Now()
	ledger, _, err := f.load(ctx)
	if err != nil || ledger.StartedAt.IsZero() {
		return
	}
	changed := !reflect.DeepEqual(old.Ledger, ledger)
	old.Ledger, old.ReadAt = ledger, readAt
	_, old.gates = f.Surroundings(ctx)
	if changed {
		f.take(old, Observation{Ledger: ledger})
		return
	}
	// Unchanged state is not reported.
	f.snapshot.Store(&old)
}

func (f *Follower) take(next Snapshot, observed Observation) {
	f.snapshot.Store(&next)
	f.OnSnapshot(next, observed)
}

// observe enters the announcement of a snapshot into the stored ledger, and sets the stored ledger in the snapshot.
// A saved ledger is loaded again, since a key counts from when it is found stored.
func (f *Follower) observe(ctx context.Context, next *Snapshot) (all Observation, err error) {
	for range maxRounds {
		readAt := f.Clock.Now()
		ledger, version, err := f.load(ctx)
		if err != nil {
			return Observation{}, err
		}
		view := keys.View{Settings: f.Settings}
		view.Documents, view.Gates = f.Surroundings(ctx)
		// The time is read last, so that all of the view was true by then.
		view.Now = f.Clock.Now()
		observed, err := ledger.Observe(next.Announcement, view)
		if err != nil {
			return Observation{}, err
		}
		all.Outdated = observed.Outdated
		if !observed.Changed {
			all.Ledger = ledger
			next.Ledger, next.ReadAt, next.gates = ledger, readAt, view.Gates
			return all, nil
		}
		err = f.save(ctx, observed.Ledger, version)
		if err != nil && !errors.Is(err, ErrConflict) {
			return Observation{}, err
		}
		if err == nil {
			all.Changed = true
			all.Added = append(all.Added, observed.Added...)
			all.Withdrawn = append(all.Withdrawn, observed.Withdrawn...)
			all.Returned = append(all.Returned, observed.Returned...)
		}
	}
	return Observation{}, refuse(ReasonStore, "the ledger of the external signer's keys did not come to rest: another writer changes it all the time")
}

func (f *Follower) load(ctx context.Context) (Ledger, string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ledger, version, err := f.Store.Load(ctx)
	if err == nil {
		err = ledger.Validate()
	}
	if err != nil {
		return Ledger{}, "", &Error{Reason: ReasonStore, Detail: "load ledger of the external signer's keys", Cause: err}
	}
	return ledger, version, nil
}

func (f *Follower) save(ctx context.Context, ledger Ledger, version string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := f.Store.Save(ctx, ledger, version); err != nil {
		return &Error{Reason: ReasonStore, Detail: "save ledger of the external signer's keys", Cause: err}
	}
	return nil
}

// rest waits for the end of the pause or, after the shortest one, for a wish.
func (f *Follower) rest(ctx context.Context, pause time.Duration) {
	quiet := f.Clock.NewTimer(min(pause, minPause))
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return
	case <-quiet.C():
	}
	if pause <= minPause {
		return
	}
	select {
	case <-f.wanted: // one that came meanwhile waits for nothing more
		return
	default:
	}
	end := f.Clock.NewTimer(pause - minPause)
	defer end.Stop()
	select {
	case <-ctx.Done():
	case <-end.C():
	case <-f.wanted:
	}
}
