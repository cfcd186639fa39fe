package externalsigner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/credence-id/credence/internal/externalsigner"
	"github.com/credence-id/credence/internal/externalsigner/externalsignertest"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
	"github.com/credence-id/credence/test/testkit"
)

// memory is a store in memory. Its funcs change what it does.
type memory struct {
	mu     sync.Mutex
	ledger externalsigner.Ledger
	writes int
	// onLoad and onSave may give the error of a call, and are called without the lock.
	onLoad, onSave func() error
}

func (m *memory) Load(context.Context) (externalsigner.Ledger, string, error) {
	if m.onLoad != nil {
		if err := m.onLoad(); err != nil {
			return externalsigner.Ledger{}, "", err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger, m.version(), nil
}

func (m *memory) version() string {
	if m.writes == 0 {
		return ""
	}
	return fmt.Sprint(m.writes)
}

func (m *memory) Save(_ context.Context, ledger externalsigner.Ledger, expected string) error {
	if m.onSave != nil {
		if err := m.onSave(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if expected != m.version() {
		return fmt.Errorf("memory: %w", externalsigner.ErrConflict)
	}
	m.ledger, m.writes = ledger, m.writes+1
	return nil
}

func (m *memory) stored() externalsigner.Ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger
}

// gated is a client whose polls the test lets through.
type gated struct {
	*externalsigner.Client
	polls, released chan struct{}
	hangs           *atomic.Bool // no answer comes to a poll
}

func (g gated) Keys(ctx context.Context) (externalsigner.Announcement, error) {
	select {
	case g.polls <- struct{}{}:
	case <-ctx.Done():
		return externalsigner.Announcement{}, ctx.Err()
	}
	<-g.released
	if g.hangs.Load() {
		limited, cancel := context.WithTimeout(ctx, shortly)
		defer cancel()
		ctx = limited
	}
	return g.Client.Keys(ctx)
}

// followed is a follower that runs.
type followed struct {
	*externalsigner.Follower
	clock  *testingclock.FakeClock
	signer gated
	mu     sync.Mutex
	errs   []error
	took   []externalsigner.Observation
}

// follow runs a follower of a fake until the test ends. Random numbers are 0: pauses are the longest.
func follow(t *testing.T, fake *externalsignertest.Fake, store externalsigner.LedgerStore, with keys.Settings, gates ...keys.Gate) *followed {
	t.Helper()
	f := &followed{
		clock: testingclock.NewFakeClock(time.Now()),
		signer: gated{
			Client: newClient(t, externalsignertest.Serve(t, fake), 0),
			polls:  make(chan struct{}), released: make(chan struct{}), hangs: &atomic.Bool{},
		},
	}
	var err error
	f.Follower, err = externalsigner.NewFollower(externalsigner.Following{
		Signer: f.signer, Store: store, Settings: with, Clock: f.clock, Random: func() float64 { return 0 },
		Surroundings: func(context.Context) (*keys.Gate, []keys.Gate) { return nil, gates },
		OnSnapshot: func(_ externalsigner.Snapshot, o externalsigner.Observation) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.took = append(f.took, o)
		},
		OnError: func(err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.errs = append(f.errs, err)
		},
	})
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

// poll waits for the next poll by the fake clock, lets it through, waits until it is done, and returns how long the pause
// before it was, and its error.
func (f *followed) poll(t *testing.T) (pause time.Duration, err error) {
	t.Helper()
	const tick = 100 * time.Millisecond
	for waiting := true; waiting; {
		select {
		case <-f.signer.polls:
			waiting = false
		default:
			if f.clock.HasWaiters() {
				f.clock.Step(tick)
				pause += tick
			}
			runtime.Gosched()
		}
	}
	f.mu.Lock()
	f.errs = nil
	f.mu.Unlock()
	f.signer.released <- struct{}{}
	for !f.clock.HasWaiters() {
		runtime.Gosched()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return pause, errors.Join(f.errs...)
}

// good polls, and fails on an error.
func (f *followed) good(t *testing.T) {
	t.Helper()
	testkit.Must(t, testkit.Err(f.poll(t)))
}

func (f *followed) published() []identity.KeyID {
	snapshot, _ := f.Snapshot()
	return published(snapshot.Ledger)
}

func firstKeys() []identity.KeyID { return []identity.KeyID{"signer/rs-1", "signer/es-1"} }

func wantPublished(t *testing.T, f *followed, want ...identity.KeyID) {
	t.Helper()
	if diff := cmp.Diff(want, f.published()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestFollowerSignsAtFirstStart(t *testing.T) {
	store := &memory{}
	f := follow(t, externalsignertest.NewFake(), store, keys.Settings{})
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonNotReady {
		t.Errorf("before the first poll: %v", err)
	}
	f.good(t)
	testkit.Expect(t, f.Ready())
	wantPublished(t, f, firstKeys()...)
	snapshot, _ := f.Snapshot()
	if diff := cmp.Diff(store.stored(), snapshot.Ledger); diff != "" {
		t.Errorf("stored and published differ:\n%s", diff)
	}
	if snapshot.MaxLifetime != time.Hour || snapshot.Ledger.Keys[0].PublishedAt.IsZero() {
		t.Errorf("maximum lifetime %s, keys %+v", snapshot.MaxLifetime, snapshot.Ledger.Keys[0])
	}
	testkit.Expect(t, testkit.Err(f.SignClaims(t.Context(), claims(), both())))
	writes := store.writes
	f.good(t)
	if store.writes != writes {
		t.Error("the ledger is written though nothing has changed")
	}
}

// Keys that were not saved are not published, and do not sign.
func TestKeysThatAreNotSavedDoNotCount(t *testing.T) {
	fake, store := externalsignertest.NewFake(), &memory{}
	f := follow(t, fake, store, keys.Settings{})
	full := errors.New("the store is full")
	store.onSave = func() error { return full }
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonStore || !errors.Is(err, full) {
		t.Errorf("%v, want %s", err, externalsigner.ReasonStore)
	}
	if _, ok := f.Snapshot(); ok || f.Ready() == nil {
		t.Error("keys count that were not saved")
	}
	store.onSave = nil
	f.good(t)

	fake.Change(func(s *externalsignertest.State) {
		s.Keys, s.Signing = append(s.Keys, externalsignertest.NewKey("new", identity.ES256)), 2
	})
	store.onSave = func() error { return full }
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonStore {
		t.Error(err)
	}
	wantPublished(t, f, firstKeys()...)
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonUnknownKey {
		t.Errorf("%v, want %s", err, externalsigner.ReasonUnknownKey)
	}
}

func TestConflictIsDecidedAgain(t *testing.T) {
	fake, store := externalsignertest.NewFake(), &memory{}
	other := externalsignertest.NewKey("other", identity.ES256)
	once := sync.OnceFunc(func() {
		// Another replica, whose signer has read its keys later, is first.
		announced := announce(t, time.Now().Add(time.Hour), append(fakeKeys(fake), other)...)
		store.mu.Lock()
		defer store.mu.Unlock()
		store.ledger, store.writes = observe(t, externalsigner.Ledger{}, announced, time.Now()).Ledger, 1
	})
	store.onSave = func() error { once(); return nil }
	f := follow(t, fake, store, keys.Settings{})
	f.good(t)
	wantPublished(t, f, "signer/rs-1", "other", "signer/es-1")
	if last := f.took[len(f.took)-1]; !last.Outdated {
		t.Errorf("the announcement is not reported as outdated: %+v", last)
	}

	store.onSave = func() error { return externalsigner.ErrConflict }
	fake.Change(func(s *externalsignertest.State) {
		s.Keys, s.DataTimestamp = append(s.Keys, other, externalsignertest.NewKey("x", identity.ES256)), time.Now().Add(2*time.Hour)
	})
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonStore {
		t.Errorf("conflicts without end: %v", err)
	}
}

func fakeKeys(fake *externalsignertest.Fake) (list []externalsignertest.Key) {
	fake.Change(func(s *externalsignertest.State) { list = append(list, s.Keys...) })
	return list
}

// Whatever the signer announces, the last good keys stay published and sign; when it is mended, they are followed again.
func TestLastGoodKeysStay(t *testing.T) {
	for _, defect := range externalsignertest.KeyDefects() {
		t.Run(defect.Name, func(t *testing.T) {
			t.Parallel()
			fake, store := externalsignertest.NewFake(), &memory{}
			f := follow(t, fake, store, keys.Settings{})
			f.good(t)
			var good externalsignertest.State
			fake.Change(func(s *externalsignertest.State) { good = *s; defect.Plant(s) })
			f.signer.hangs.Store(defect.Reason == externalsigner.ReasonTimeout)
			if _, err := f.poll(t); reasonOf(err) != defect.Reason {
				t.Errorf("%s (%v), want %s", reasonOf(err), err, defect.Reason)
			}
			wantPublished(t, f, firstKeys()...)
			testkit.Expect(t, f.Ready())
			good.Keys = append(good.Keys, externalsignertest.NewKey("new", identity.ES256))
			fake.Change(func(s *externalsignertest.State) { *s = good })
			f.signer.hangs.Store(false)
			pause, err := f.poll(t)
			if err != nil || pause > 10*time.Second {
				t.Errorf("after %s: %v", pause, err)
			}
			wantPublished(t, f, "signer/rs-1", "new", "signer/es-1")
		})
	}
}

func TestKeySwappedUnderItsKid(t *testing.T) {
	fake := externalsignertest.NewFake()
	f := follow(t, fake, &memory{}, keys.Settings{})
	f.good(t)
	fake.Change(func(s *externalsignertest.State) { s.Keys[0] = externalsignertest.NewKey(s.Keys[0].ID, identity.ES256) })
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonKeyChanged {
		t.Errorf("%v, want %s", err, externalsigner.ReasonKeyChanged)
	}
	wantPublished(t, f, firstKeys()...)
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonWrongSignature {
		t.Errorf("%v, want %s", err, externalsigner.ReasonWrongSignature)
	}
}

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		hint int64
		with keys.Settings
		want time.Duration
	}{
		{30, keys.Settings{}, 30 * time.Second},
		{1, keys.Settings{}, 10 * time.Second},
		{3600, keys.Settings{}, time.Minute},
		{1 << 62, keys.Settings{Staleness: time.Hour}, 5 * time.Minute},
		{3600, keys.Settings{Staleness: 5 * time.Second}, 5 * time.Second},
		{1, keys.Settings{Staleness: 5 * time.Second}, 5 * time.Second},
	} {
		fake := externalsignertest.NewFake()
		fake.Change(func(s *externalsignertest.State) { s.RefreshHint = c.hint })
		f := follow(t, fake, &memory{}, c.with)
		f.good(t)
		if got, err := f.poll(t); got != c.want || err != nil {
			t.Errorf("hint %d s, staleness %s: after %s (%v), want %s", c.hint, c.with.Staleness, got, err, c.want)
		}
	}
}

func TestRetriesAreSoonAndNotHot(t *testing.T) {
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.FailKeys = errors.New("down") })
	f := follow(t, fake, &memory{}, keys.Settings{})
	f.poll(t)
	var got []time.Duration
	for range 7 {
		pause, err := f.poll(t)
		if err == nil {
			t.Fatal("no error")
		}
		got = append(got, pause)
	}
	want := []time.Duration{500, 1000, 2000, 4000, 8000, 10000, 10000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	fake.Change(func(s *externalsignertest.State) { s.FailKeys = nil })
	f.good(t)
	fake.Change(func(s *externalsignertest.State) { s.FailKeys = errors.New("down") })
	f.poll(t)
	if pause, _ := f.poll(t); pause != 500*time.Millisecond {
		t.Errorf("the first retry after a good poll came after %s", pause)
	}
}

// A token under a new key is withheld for P, and the error has the time of its end.
func TestYoungKeyIsWithheld(t *testing.T) {
	fake := externalsignertest.NewFake()
	with := keys.Settings{Staleness: 10 * time.Second, PublishPeriod: time.Hour, ClockSkew: time.Second}
	f := follow(t, fake, &memory{}, with)
	// With so small a tolerance, keys that are read later by the clock of this machine alone are of the future.
	fake.Change(func(s *externalsignertest.State) { s.DataTimestamp = f.clock.Now() })
	f.good(t)
	fake.Change(func(s *externalsignertest.State) {
		s.Keys, s.Signing = append(s.Keys, externalsignertest.NewKey("new", identity.ES256)), 2
	})
	// It is fetched sooner than the signer's hint.
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonUnknownKey {
		t.Errorf("%v, want %s", err, externalsigner.ReasonUnknownKey)
	}
	if pause, err := f.poll(t); err != nil || pause != 2*time.Second {
		t.Errorf("polled after %s: %v", pause, err)
	}
	wantPublished(t, f, "signer/rs-1", "new", "signer/es-1")
	_, err := f.SignClaims(t.Context(), claims(), both())
	withheld, ok := errors.AsType[*externalsigner.Error](err)
	if !ok || withheld.Reason != externalsigner.ReasonTooYoung {
		t.Fatalf("%v, want %s", err, externalsigner.ReasonTooYoung)
	}
	if wait := withheld.ReadyAt.Sub(f.clock.Now()); wait < time.Hour+10*time.Second || wait > time.Hour+14*time.Second {
		t.Errorf("it may sign after %s", wait)
	}
	if !strings.Contains(err.Error(), withheld.ReadyAt.Format(time.RFC3339)) {
		t.Errorf("%q lacks the time until which", err)
	}
	f.clock.SetTime(withheld.ReadyAt.Add(-time.Nanosecond))
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonTooYoung {
		t.Errorf("just before: %v", err)
	}
	f.clock.SetTime(withheld.ReadyAt)
	testkit.Expect(t, testkit.Err(f.SignClaims(t.Context(), claims(), both())), "then")
}

func TestGatesHoldAKey(t *testing.T) {
	fake := externalsignertest.NewFake()
	f := follow(t, fake, &memory{}, keys.Settings{}, keys.Gate{Name: "an upload", Knows: firstKeys()})
	f.good(t)
	fake.Change(func(s *externalsignertest.State) {
		s.Keys, s.Signing = append(s.Keys, externalsignertest.NewKey("new", identity.ES256)), 2
	})
	f.good(t)
	f.clock.SetTime(f.clock.Now().AddDate(1, 0, 0))
	if _, err := f.SignClaims(t.Context(), claims(), both()); reasonOf(err) != externalsigner.ReasonGates {
		t.Errorf("%v, want %s", err, externalsigner.ReasonGates)
	}
}

// A replica whose signer is away publishes the stored ledger, at a start, too, and what others store meanwhile.
func TestSignerThatIsAwayKeepsItsKeysPublished(t *testing.T) {
	fake, store := externalsignertest.NewFake(), &memory{}
	follow(t, fake, store, keys.Settings{}).good(t)
	away := externalsignertest.NewFake()
	away.Change(func(s *externalsignertest.State) { s.FailKeys = errors.New("down") })
	f := follow(t, away, store, keys.Settings{})
	f.poll(t)
	wantPublished(t, f, firstKeys()...)
	if f.Ready() == nil {
		t.Error("it is ready, but can not sign")
	}
	other := follow(t, fake, store, keys.Settings{})
	fake.Change(func(s *externalsignertest.State) {
		s.Keys = append(s.Keys, externalsignertest.NewKey("new", identity.ES256))
	})
	other.good(t)
	f.poll(t)
	wantPublished(t, f, "signer/rs-1", "new", "signer/es-1")
}

// The metadata is not needed to publish, but to sign.
func TestMetadataThatIsWrong(t *testing.T) {
	fake := externalsignertest.NewFake()
	fake.Change(func(s *externalsignertest.State) { s.MaxLifetime = 1 })
	f := follow(t, fake, &memory{}, keys.Settings{})
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonMetadata {
		t.Errorf("%v, want %s", err, externalsigner.ReasonMetadata)
	}
	wantPublished(t, f, firstKeys()...)
	if reasonOf(f.Ready()) != externalsigner.ReasonNotReady {
		t.Errorf("ready: %v", f.Ready())
	}
	fake.Change(func(s *externalsignertest.State) { s.MaxLifetime = 600 })
	f.good(t)
	fake.Change(func(s *externalsignertest.State) { s.MaxLifetime = 0 })
	f.poll(t)
	if snapshot, _ := f.Snapshot(); snapshot.MaxLifetime != 10*time.Minute || f.Ready() != nil {
		t.Errorf("maximum lifetime %s, ready: %v", snapshot.MaxLifetime, f.Ready())
	}
}

func TestLedgerThatIsNotValid(t *testing.T) {
	store := &memory{ledger: externalsigner.Ledger{StartedAt: start, Keys: make([]externalsigner.LedgerKey, 1)}, writes: 1}
	f := follow(t, externalsignertest.NewFake(), store, keys.Settings{})
	if _, err := f.poll(t); reasonOf(err) != externalsigner.ReasonStore || !strings.Contains(fmt.Sprint(err), "keys[0].kid") {
		t.Errorf("%v, want %s with the field", err, externalsigner.ReasonStore)
	}
	if _, ok := f.Snapshot(); ok {
		t.Error("it is published")
	}
}

func TestNewFollowerRefuses(t *testing.T) {
	good := externalsigner.Following{
		Signer: gated{}, Store: &memory{}, Clock: testingclock.NewFakeClock(start), Random: func() float64 { return 0 },
	}
	testkit.Must(t, testkit.Err(externalsigner.NewFollower(good)))
	for name, spoil := range map[string]func(*externalsigner.Following){
		"no signer": func(f *externalsigner.Following) { f.Signer = nil },
		"no store":  func(f *externalsigner.Following) { f.Store = nil },
		"no clock":  func(f *externalsigner.Following) { f.Clock = nil },
		"no random": func(f *externalsigner.Following) { f.Random = nil },
		"settings":  func(f *externalsigner.Following) { f.Settings.PublishPeriod = time.Second },
	} {
		bad := good
		spoil(&bad)
		if _, err := externalsigner.NewFollower(bad); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestMemoryConforms(t *testing.T) {
	externalsignertest.RunStore(t, func(*testing.T) func() externalsigner.LedgerStore {
		store := &memory{}
		return func() externalsigner.LedgerStore { return store }
	})
}
