package keyring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

// faulty is a real store whose next calls a test can make fail.
type faulty struct {
	keystore.Store
	mu sync.Mutex
	// load and save are the errors of the next calls, one each; lost makes a Save that fails take place all the same.
	load, save []error
	lost       bool
	saves      int
}

// lockedText is a log that is read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (f *faulty) Load(ctx context.Context) (keys.Ring, string, error) {
	if err := f.take(&f.load); err != nil {
		return keys.Ring{}, "", err
	}
	return f.Store.Load(ctx)
}

func (f *faulty) Save(ctx context.Context, ring keys.Ring, version string) error {
	f.mu.Lock()
	f.saves++
	f.mu.Unlock()
	if err := f.take(&f.save); err != nil {
		if f.lost {
			_ = f.Store.Save(ctx, ring, version)
		}
		return err
	}
	return f.Store.Save(ctx, ring, version)
}

func (f *faulty) take(errs *[]error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

func (f *faulty) failLoads(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.load = errs
}

// newStore has the first ring, whose times are those of keystoretest.Now.
func newStore(t *testing.T) *faulty {
	t.Helper()
	directory := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	first, _ := keystoretest.Rings()
	testkit.Must(t, directory.Save(t.Context(), first, ""))
	// Without the Watch of a directory: tests move the clock.
	return &faulty{Store: struct{ keystore.Store }{directory}}
}

func following(store keystore.Store, clock *testingclock.FakeClock) keyring.Following {
	return keyring.Following{Store: store, Interval: 10 * time.Second, Clock: clock, Random: func() float64 { return 0 }}
}

// pass lets time go by once the follower waits for it.
func pass(t *testing.T, clock *testingclock.FakeClock, by time.Duration) {
	t.Helper()
	testkit.Eventually(t, "a goroutine waits for the clock", clock.HasWaiters)
	clock.Step(by)
}

func settings(t *testing.T) keys.Settings {
	t.Helper()
	complete := testkit.Need(keys.Settings{}.Complete())(t)
	return complete
}

func start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Expect(t, <-done)
	})
}

func TestFollowerSignsWithNothingThatIsDamaged(t *testing.T) {
	clock := testingclock.NewFakeClock(keystoretest.Now())
	store := newStore(t)
	var log lockedText
	with := following(store, clock)
	with.Log = slog.New(slog.NewTextHandler(&log, nil))
	f := keyring.NewFollower(with)
	if ring, _ := f.Signing(); len(ring.Keys) != 0 || f.Damage() != nil {
		t.Error("a follower that has read nothing signs, or knows of damage")
	}
	testkit.Must(t, f.Load(t.Context()))
	start(t, f.Run)
	signs := func() bool { ring, _ := f.Signing(); return len(ring.Keys) == 4 }
	// until moves the clock, as a step while the ring is read begins no other read.
	until := func(what string, condition func() bool) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			if condition() {
				return true
			}
			clock.Step(time.Second)
			return false
		})
	}
	fail := func(err error) { store.failLoads(slices.Repeat([]error{err}, 100_000)...) }
	for name, c := range map[string]struct {
		err      error
		damaged  bool
		reported string
	}{
		"outage":     {errors.New("no route to host"), false, ""},
		"damaged":    {keystore.ErrUnusable, true, "damaged or gone"},
		"gone":       {keystore.ErrNotFound, true, "damaged or gone"},
		"superseded": {fmt.Errorf("%w (a key)", keyring.ErrSuperseded), true, keyring.ErrSuperseded.Error()},
	} {
		fail(c.err)
		until(name+" is noticed", func() bool { return errors.Is(f.Failure(), c.err) })
		if signs() == c.damaged || (f.Damage() != nil) != c.damaged {
			t.Errorf("%s: signs %v, damage %v", name, signs(), f.Damage())
		}
		if newest, ok := f.Newest(); !ok || len(newest.Ring.Keys) != 4 {
			t.Errorf("%s: the last good ring is not published any more", name)
		}
		if c.damaged {
			outage := errors.New("timeout")
			fail(outage)
			until("another failure is noticed", func() bool { return errors.Is(f.Failure(), outage) })
			if signs() || !errors.Is(f.Damage(), c.err) {
				t.Errorf("%s, and then an outage: signs %v, damage %v", name, signs(), f.Damage())
			}
			if err := f.Unusable(); err == nil || !strings.Contains(err.Error(), c.reported) {
				t.Errorf("%s, and then an outage: callers get %v, want %q", name, err, c.reported)
			}
		}
		store.failLoads()
		until(name+" is over", func() bool { return f.Failure() == nil && signs() })
	}
	if n := strings.Count(log.String(), "no route to host"); n != 1 {
		t.Errorf("one outage was logged %d times:\n%s", n, log.String())
	}
}

// unwatched is a store that can be read, and not watched.
type unwatched struct {
	*faulty
	watches *atomic.Int32
}

func (u unwatched) Watch(context.Context, func()) error {
	u.watches.Add(1)
	return errors.New("secrets is forbidden")
}

// Load takes no notice of its deadline, which the test's clock passes.
func (u unwatched) Load(ctx context.Context) (keys.Ring, string, error) {
	return u.faulty.Load(context.WithoutCancel(ctx))
}

func TestFollowerOfAStoreThatCannotBeWatched(t *testing.T) {
	clock := testingclock.NewFakeClock(keystoretest.Now())
	store := unwatched{newStore(t), &atomic.Int32{}}
	var log lockedText
	with := following(store, clock)
	with.Log = slog.New(slog.NewTextHandler(&log, nil))
	f := keyring.NewFollower(with)
	testkit.Must(t, f.Load(t.Context()))
	start(t, f.Run)
	const late = "changes of the ring of keys are noticed late"
	testkit.Eventually(t, "the watch has failed three times, and that is logged", func() bool {
		clock.Step(time.Second)
		return store.watches.Load() >= 3 && strings.Contains(log.String(), late)
	})
	if ring, _ := f.Signing(); len(ring.Keys) != 4 || f.Failure() != nil {
		t.Errorf("it signs with %d keys, and has failed by %v", len(ring.Keys), f.Failure())
	}
	if got := log.String(); strings.Count(got, late) != 1 || strings.Contains(got, "signing") || strings.Contains(got, "could not be read") {
		t.Errorf("a watch that fails is logged as\n%s", got)
	}
}

func TestFollowerMakesNoRing(t *testing.T) {
	directory := testkit.Need(keystore.OpenDirectory(filepath.Join(t.TempDir(), "keys")))(t)
	f := keyring.NewFollower(following(directory, testingclock.NewFakeClock(keystoretest.Now())))
	if err := f.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("no ring at start: %v", err)
	}
	if _, _, err := directory.Load(t.Context()); !errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("stored: %v", err)
	}
	broken := &faulty{Store: directory, load: []error{keystore.ErrUnusable}}
	if err := keyring.NewFollower(following(broken, testingclock.NewFakeClock(keystoretest.Now()))).Load(t.Context()); !errors.Is(err, keystore.ErrUnusable) {
		t.Errorf("a damaged ring at start: %v", err)
	}
}

// kept is the report of a Keeper.
type kept struct {
	mu     sync.Mutex
	rings  []keyring.Kept
	events []string
}

func (k *kept) onRing(_ context.Context, kept keyring.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rings = append(k.rings, kept)
}

func (k *kept) onEvents(_ context.Context, events []keys.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, event := range events {
		k.events = append(k.events, string(event.Algorithm)+" "+string(event.Kind)+" by "+event.By)
	}
}

func (k *kept) reported(event string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, each := range k.events {
		if each == event {
			n++
		}
	}
	return n
}

func (k *kept) last() (keyring.Kept, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.rings) == 0 {
		return keyring.Kept{}, false
	}
	return k.rings[len(k.rings)-1], true
}

func TestKeeperRotatesAndTellsOfWhateverHappens(t *testing.T) {
	// Late by a month: both algorithms are due.
	clock := testingclock.NewFakeClock(keystoretest.Now().Add(31 * 24 * time.Hour))
	store := newStore(t)
	store.save = []error{keystore.ErrConflict, errors.New("no route to host")}
	var reported kept
	var mu sync.Mutex
	gates := []keys.Gate{{Name: "bank"}}
	open := func() {
		mu.Lock()
		defer mu.Unlock()
		gates = nil
	}
	keeper := keyring.NewKeeper(keyring.Keeping{
		Following: following(store, clock), Settings: settings(t), Generate: keys.NewPrivate,
		Surroundings: func(context.Context) keyring.Surroundings {
			mu.Lock()
			defer mu.Unlock()
			return keyring.Surroundings{Gates: gates}
		},
		OnRing: reported.onRing, OnEvents: reported.onEvents,
	})
	// A replica that only loads, because it does not lead, changes and reports nothing.
	testkit.Must(t, keeper.Follower().Load(t.Context()))
	if _, ok := reported.last(); ok || store.saves != 0 {
		t.Fatalf("loading has reported a ring (%v), or saved one (%d)", ok, store.saves)
	}
	start(t, keeper.Run)
	testkit.Eventually(t, "the ring is reported", func() bool { kept, ok := reported.last(); return ok && len(kept.Plan.Conditions) == 2 })
	if kept, _ := reported.last(); kept.Plan.Conditions[0].Type != keys.AwaitingGates || store.saves != 0 {
		t.Fatalf("behind a closed gate: %+v, %d saves", kept.Plan.Conditions, store.saves)
	}
	open()
	// One writer comes first, one answer is an outage, the third Save succeeds; then the new keys are confirmed.
	stepUntil(t, clock, "both algorithms have rotated", func() bool {
		return reported.reported("RS256 activated by controller") == 1 && reported.reported("ES256 activated by controller") == 1
	})
	stepUntil(t, clock, "everything is confirmed", func() bool {
		kept, _ := reported.last()
		return len(kept.Plan.Conditions) == 0 && !slices.ContainsFunc(kept.Ring.Keys, func(k keys.Key) bool {
			return k.PublishedAt.IsZero() || k.State == keys.Retiring && k.LastExpiry.IsZero()
		}) && len(kept.Ring.Keys) == 6
	})
	// The changes of others are reported too, once.
	operator := keyring.Operator{Store: store, Clock: clock, Generate: keys.NewPrivate, View: defaults(t)}
	kept, _ := reported.last()
	spare := spareOf(t, kept.Ring)
	testkit.Must(t, testkit.Err(operator.Do(t.Context(), operator.Revoke(keys.Command{Key: spare.ID, Cause: keys.Cause{By: "operator", Reason: "leaked"}}), false)))
	stepUntil(t, clock, "the revocation is reported", func() bool { return reported.reported("ES256 revoked by operator") == 1 })
	pass(t, clock, time.Second)
	pass(t, clock, 20*time.Second)
	if n := reported.reported("ES256 revoked by operator"); n != 1 {
		t.Errorf("one revocation was reported %d times", n)
	}
}

func stepUntil(t *testing.T, clock *testingclock.FakeClock, what string, condition func() bool) {
	t.Helper()
	for range 30 {
		if condition() {
			return
		}
		pass(t, clock, 11*time.Second)
	}
	testkit.Eventually(t, what, condition)
}

func spareOf(t *testing.T, ring keys.Ring) keys.Key {
	t.Helper()
	i := slices.IndexFunc(ring.Keys, func(k keys.Key) bool { return k.State == keys.Spare && k.Algorithm == identity.ES256 })
	if i < 0 {
		t.Fatalf("no spare: %v", ring.Keys)
	}
	return ring.Keys[i]
}

func defaults(t *testing.T) func(context.Context) (keys.View, error) {
	return func(context.Context) (keys.View, error) { return keys.View{Settings: settings(t)}, nil }
}

func TestOperator(t *testing.T) {
	clock := testingclock.NewFakeClock(keystoretest.Now())
	outage := errors.New("no route to host")
	revoke := func(o keyring.Operator, ring keys.Ring) keyring.Command {
		return o.Revoke(keys.Command{Key: spareOf(t, ring).ID, Cause: keys.Cause{By: "operator", Reason: "leaked"}})
	}
	for name, c := range map[string]struct {
		prepare func(store *faulty)
		dryRun  bool
		err     error
		done    bool
	}{
		"plain":                  {prepare: func(*faulty) {}, done: true},
		"dry run":                {prepare: func(*faulty) {}, dryRun: true},
		"another writer first":   {prepare: func(s *faulty) { s.save = []error{keystore.ErrConflict, keystore.ErrConflict} }, done: true},
		"another writer always":  {prepare: func(s *faulty) { s.save = slices.Repeat([]error{keystore.ErrConflict}, 9) }, err: keystore.ErrConflict},
		"no answer, not done":    {prepare: func(s *faulty) { s.save = []error{outage} }, err: keyring.ErrUnknownOutcome},
		"no answer, but done":    {prepare: func(s *faulty) { s.save, s.lost = []error{outage}, true }, done: true},
		"conflict with itself":   {prepare: func(s *faulty) { s.save, s.lost = []error{keystore.ErrConflict}, true }, done: true},
		"store can not be read":  {prepare: func(s *faulty) { s.load = []error{outage} }, err: outage},
		"a ring that is damaged": {prepare: func(s *faulty) { s.load = []error{keystore.ErrUnusable} }, err: keystore.ErrUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			first, _, err := store.Load(t.Context())
			testkit.Must(t, err)
			c.prepare(store)
			reported := 0
			o := keyring.Operator{Store: store, Clock: clock, Generate: keystoretest.RSAOnce(), View: defaults(t), Done: func() { reported++ }}
			outcome, err := o.Do(t.Context(), revoke(o, first), c.dryRun)
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && (len(outcome.Events) == 0 || outcome.Events[0].Kind != keys.Revoked) {
				t.Errorf("outcome: %+v", outcome.Events)
			}
			stored, _, err := store.Store.Load(t.Context())
			testkit.Must(t, err)
			if done := len(stored.Compromised) == 1; done != c.done || (reported == 1) != c.done {
				t.Errorf("done: %v, reported %d times, want %v", done, reported, c.done)
			}
		})
	}
}

func TestOperatorPassesOnRefusals(t *testing.T) {
	store := newStore(t)
	o := keyring.Operator{Store: store, Clock: testingclock.NewFakeClock(keystoretest.Now()), Generate: keystoretest.RSAOnce(), View: defaults(t)}
	_, err := o.Do(t.Context(), o.RotateNow(keys.Command{Algorithm: identity.ES256, Cause: keys.Cause{By: "operator"}}), false)
	if refused, ok := errors.AsType[*keys.Refused](err); !ok || refused.Reason != keys.TooYoung || store.saves != 0 {
		t.Errorf("a spare of this moment: %v, %d saves", err, store.saves)
	}
	broken := errors.New("no KeyRing")
	o.View = func(context.Context) (keys.View, error) { return keys.View{}, broken }
	if _, err := o.Do(t.Context(), keyring.Rotate(keys.Command{Algorithm: identity.ES256, Cause: keys.Cause{By: "operator"}}), false); !errors.Is(err, broken) {
		t.Errorf("without a view: %v", err)
	}
}
