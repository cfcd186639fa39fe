package keystore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/internal/keyring/keystore"
	"github.com/credence-id/credence/internal/keyring/keystore/keystoretest"
	"github.com/credence-id/credence/test/testkit"
)

const interval = time.Minute

// answer is the result of one Load.
type answer struct {
	ring    keys.Ring
	version string
	err     error
}

// answered is a store that lets the test answer each Load.
type answered struct {
	keystore.Store
	loads   chan context.Context
	answers chan answer
}

func newAnswered() answered {
	return answered{loads: make(chan context.Context), answers: make(chan answer)}
}

func (s answered) Load(ctx context.Context) (keys.Ring, string, error) {
	s.loads <- ctx
	a := <-s.answers
	return a.ring, a.version, a.err
}

// load is one Load of a store.
func (s answered) load(t *testing.T) context.Context {
	t.Helper()
	return receive(t, s.loads)
}

// watchable is such a store that lets the test report changes, too.
type watchable struct {
	answered
	watches chan func()
	ends    chan error
}

func newWatchable() watchable {
	return watchable{answered: newAnswered(), watches: make(chan func()), ends: make(chan error)}
}

func (s watchable) Watch(ctx context.Context, changed func()) error {
	s.watches <- changed
	select {
	case err := <-s.ends:
		return err
	case <-ctx.Done():
		return nil
	}
}

// report is a call of a follower's hooks.
type report struct {
	version string
	readAt  time.Time
	err     error
}

// following is a running Follow.
type following struct {
	clock  *testingclock.FakeClock
	report chan report
	stop   func()
}

// follow starts to follow a store, with random numbers that are all the same.
func follow(t *testing.T, store keystore.Store, random float64) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{clock: testingclock.NewFakeClock(keystoretest.Now()), report: make(chan report)}
	done := make(chan error, 1)
	send := func(s report) {
		select {
		case f.report <- s:
		case <-ctx.Done():
		}
	}
	go func() {
		done <- keystore.Follow(ctx, store, keystore.Following{
			Interval: interval, Clock: f.clock, Random: func() float64 { return random },
			OnRing:  func(_ keys.Ring, version string, readAt time.Time) { send(report{version: version, readAt: readAt}) },
			OnError: func(err error) { send(report{err: err}) }, OnUnwatched: func(err error) { send(report{err: err}) },
		})
	}()
	f.stop = func() {
		cancel()
		testkit.Expect(t, receive(t, done), "follow")
	}
	return f
}

func receive[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(5 * time.Minute):
		t.Fatalf("waited in vain on a %T", from)
		panic("unreachable")
	}
}

// resting waits until the follower waits for nothing but its clock.
func (f *following) resting(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the follower rests", func() bool { return f.clock.Waiters() == 1 })
}

// pass lets time pass while the follower rests.
func (f *following) pass(t *testing.T, d time.Duration) {
	t.Helper()
	f.resting(t)
	f.clock.Step(d)
}

// restsFor checks that the follower reads again after d, and not a nanosecond earlier.
func (f *following) restsFor(t *testing.T, store answered, d time.Duration) {
	t.Helper()
	f.pass(t, keystore.MinPause)
	f.pass(t, d-keystore.MinPause-1)
	f.resting(t)
	select {
	case <-store.loads:
		t.Fatalf("the store was read before %v were over", d)
	default:
	}
	f.clock.Step(1)
	store.load(t)
}

func TestFollowTellsWhenItBeganToRead(t *testing.T) {
	store := newAnswered()
	f := follow(t, store, 0)
	for _, version := range []string{"1", "1", "2"} {
		store.load(t)
		began := f.clock.Now()
		// The answer of a slow store was true at the request, and may be outdated.
		f.clock.Step(5 * time.Second)
		store.answers <- answer{version: version}
		if diff := cmp.Diff(report{version: version, readAt: began}, receive(t, f.report), cmp.AllowUnexported(report{})); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		f.pass(t, keystore.MinPause)
		f.pass(t, interval)
	}
	store.load(t)
	go func() { store.answers <- answer{version: "3"} }()
	f.stop()
}

func TestFollowPollsWithinTheInterval(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: interval, 0.5: interval * 7 / 8, 0.96875: interval - interval*31/128} {
		store := newAnswered()
		f := follow(t, store, random)
		store.load(t)
		for range 3 {
			store.answers <- answer{version: "1"}
			receive(t, f.report)
			f.restsFor(t, store, want)
		}
		go func() { store.answers <- answer{version: "1"} }()
		f.stop()
	}
}

func TestFollowRetriesSoonAndNeverInAHotLoop(t *testing.T) {
	store := newAnswered()
	f := follow(t, store, 0)
	store.load(t)
	away := errors.New("away")
	fail := func(pauses ...time.Duration) {
		t.Helper()
		for _, pause := range pauses {
			store.answers <- answer{err: away}
			if got := receive(t, f.report); got.err != away {
				t.Errorf("reported %+v, want the error of the store", got)
			}
			f.restsFor(t, store, pause)
		}
	}
	fail(500*time.Millisecond, time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second, 32*time.Second, interval, interval)
	store.answers <- answer{version: "1"}
	receive(t, f.report)
	f.restsFor(t, store, interval)
	fail(500*time.Millisecond, time.Second)
	go func() { store.answers <- answer{err: away} }()
	f.stop()
}

func TestFollowGivesUpAReadThatHangs(t *testing.T) {
	store := newAnswered()
	f := follow(t, store, 0)
	ctx := store.load(t)
	f.pass(t, keystore.LoadTimeout-1)
	if ctx.Err() != nil {
		t.Fatal("the read was given up too early")
	}
	f.pass(t, 1)
	testkit.Eventually(t, "the read is given up", func() bool { return ctx.Err() != nil })
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "no answer within 10s") {
		t.Errorf("cause %v, want the limit", cause)
	}
	store.answers <- answer{err: context.Cause(ctx)}
	if got := receive(t, f.report); got.err == nil {
		t.Error("a read that was given up confirmed a ring")
	}
	f.restsFor(t, store, keystore.FirstRetry)
	go func() { store.answers <- answer{version: "1"} }()
	f.stop()
}

func TestFollowReadsWhenTheStoreChanged(t *testing.T) {
	store := newWatchable()
	f := follow(t, store, 0)
	store.load(t)
	store.answers <- answer{version: "1"}
	receive(t, f.report)
	changed := receive(t, store.watches)
	for range 3 {
		// However many changes there are, the store has its pause, and one read learns of all.
		for range 100 {
			changed()
		}
		f.resting(t)
		f.clock.Step(keystore.MinPause - 1)
		f.resting(t)
		select {
		case <-store.loads:
			t.Fatal("the store was read without a pause")
		default:
		}
		f.clock.Step(1)
		store.load(t)
		store.answers <- answer{version: "2"}
		if got := receive(t, f.report); got.version != "2" {
			t.Errorf("reported %+v, want version 2", got)
		}
	}
	// Polls go on: a watch may have died unnoticed.
	f.restsFor(t, store.answered, interval)
	store.answers <- answer{version: "2"}
	receive(t, f.report)
	f.stop()
}

func TestFollowWatchesAgainWithTheNextPoll(t *testing.T) {
	store := newWatchable()
	f := follow(t, store, 0)
	store.load(t)
	store.answers <- answer{version: "1"}
	receive(t, f.report)
	changed := receive(t, store.watches)
	for _, end := range []error{nil, errors.New("refused"), nil} {
		f.resting(t)
		store.ends <- end
		f.pass(t, keystore.MinPause)
		if end != nil {
			if got := receive(t, f.report); got.err != end {
				t.Errorf("reported %+v, want how the watch ended", got)
			}
		}
		// The last change that it reported makes the store be read, but not be watched.
		changed()
		store.load(t)
		store.answers <- answer{version: "1"}
		receive(t, f.report)
		f.pass(t, keystore.MinPause)
		f.resting(t)
		select {
		case <-store.watches:
			t.Fatal("the next watch began without a poll")
		default:
		}
		testkit.Eventually(t, "the store is watched again", func() bool {
			select {
			case changed = <-store.watches:
				return true
			case <-store.loads:
				store.answers <- answer{version: "1"}
				receive(t, f.report)
			default:
				f.clock.Step(keystore.MinPause)
			}
			return false
		})
	}
	f.stop()
}

// A watch needs the API that just failed: it is not started before a read succeeds.
func TestFollowWatchesWhatItCouldRead(t *testing.T) {
	store := newWatchable()
	f := follow(t, store, 0)
	store.load(t)
	store.answers <- answer{err: errors.New("away")}
	receive(t, f.report)
	f.restsFor(t, store.answered, keystore.FirstRetry)
	select {
	case <-store.watches:
		t.Fatal("a store that could not be read is watched")
	default:
	}
	store.answers <- answer{version: "1"}
	receive(t, f.report)
	receive(t, store.watches)
	f.stop()
}

func TestFollowTellsNothingAfterItsEnd(t *testing.T) {
	store := newAnswered()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- keystore.Follow(ctx, store, keystore.Following{
			Interval: interval, Clock: testingclock.NewFakeClock(keystoretest.Now()), Random: func() float64 { return 0 },
			OnRing:  func(keys.Ring, string, time.Time) { t.Error("a ring was reported") },
			OnError: func(err error) { t.Errorf("an error was reported: %v", err) },
		})
	}()
	store.load(t)
	cancel()
	store.answers <- answer{version: "1"}
	testkit.Expect(t, receive(t, done))
}

func TestFollowRefusesAShortInterval(t *testing.T) {
	for _, short := range []time.Duration{-time.Second, 0, time.Second - 1} {
		err := keystore.Follow(t.Context(), newAnswered(), keystore.Following{Interval: short})
		if err == nil || !strings.Contains(err.Error(), "must be at least 1s") {
			t.Errorf("interval %v: %v, want the limit", short, err)
		}
	}
}

func TestFollowSecretByItsWatch(t *testing.T) {
	a, store, _ := secretFilled(t)
	f := follow(t, store, 0)
	defer f.stop()
	seen := func(version string) {
		t.Helper()
		for reported := false; !reported; {
			got := receive(t, f.report)
			// Its shortest pause is all the time that passes: the next poll is far away.
			f.pass(t, keystore.MinPause)
			reported = got.version == version
		}
	}
	seen("1")
	testkit.Eventually(t, "the Secret is watched", func() bool {
		return cmp.Equal([]string{"metadata.name=" + ringName}, a.watched())
	})
	for _, ring := range []keys.Ring{nextRing(), firstRing()} {
		seen(a.put(ownSecret(dataOf(t, ring))))
	}
	began := f.clock.Now()
	a.put(ownSecret(dataOf(t, nextRing())))
	seen("4")
	if passed := f.clock.Now().Sub(began); passed >= interval*3/4 {
		t.Errorf("the clock went on by %v: a poll may have reported", passed)
	}
}
