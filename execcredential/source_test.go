package execcredential_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

// script is a Provider that gives what a test sets, and counts.
type script struct {
	runs atomic.Int32
	next func(run int) (execcredential.Material, error)
	now  func() time.Time
}

func (s *script) Credential(context.Context) (*execcredential.Credential, error) {
	m, err := s.next(int(s.runs.Add(1)))
	if err != nil {
		return nil, err
	}
	return execcredential.NewCredential(m, s.now())
}

func scripted(t testing.TB, o execcredential.Options, next func(run int) (execcredential.Material, error)) (*execcredential.Source, *script, *exectest.Clock) {
	t.Helper()
	pool, clock := newPool(t, o)
	s := &script{next: next, now: clock.Now}
	return pool.SourceOf(s), s, clock
}

func name(run int) string { return string(rune('a' + run - 1)) }

func mustGet(t testing.TB, source *execcredential.Source, want string) {
	t.Helper()
	got, err := source.Get(t.Context())
	if err != nil || got.Token() != want {
		t.Fatalf("credential %q, error %v, want %q", got.Token(), err, want)
	}
}

func TestKeptUntilItExpires(t *testing.T) {
	source, script, clock := scripted(t, execcredential.Options{}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run), Expires: clock.Now().Add(time.Hour)}, nil
	}
	mustGet(t, source, "a")
	clock.Advance(time.Hour - 1)
	mustGet(t, source, "a")
	clock.Advance(1)
	mustGet(t, source, "b")
	if got := source.Status(); got.Runs != 2 || !got.Expires.Equal(start.Add(2*time.Hour)) {
		t.Errorf("status %+v", got)
	}
}

func TestWithoutTimestampForever(t *testing.T) {
	source, script, clock := scripted(t, execcredential.Options{RefreshAhead: time.Hour}, func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run)}, nil
	})
	mustGet(t, source, "a")
	clock.Advance(100 * 365 * 24 * time.Hour)
	mustGet(t, source, "a")
	if script.runs.Load() != 1 {
		t.Errorf("%d runs", script.runs.Load())
	}
}

// storm calls f n times at once and returns the errors.
func storm(n int, f func() error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errs
}

func TestStormOfFirstRequests(t *testing.T) {
	source, script, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) {
		return execcredential.Material{Token: "abc"}, nil
	})
	for _, err := range storm(100, func() error { return errOf(source.Get(t.Context())) }) {
		expect(t, err)
	}
	if script.runs.Load() != 1 {
		t.Errorf("%d runs", script.runs.Load())
	}
}

// 100 concurrent requests against a program that fails are one run; so are a thousand more before the pause is over.
func TestStormOfFailures(t *testing.T) {
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer { return exectest.Answer{ExitCode: 1} })
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	for _, err := range storm(100, func() error { return errOf(source.Get(t.Context())) }) {
		if e := (*execcredential.ExitError)(nil); !errors.As(err, &e) {
			t.Errorf("error %v", err)
		}
	}
	for _, err := range storm(1000, func() error { return errOf(source.Get(t.Context())) }) {
		e := (*execcredential.BackoffError)(nil)
		if !errors.As(err, &e) || e.Failures != 1 || !e.Next.Equal(start.Add(500*time.Millisecond)) {
			t.Errorf("error %v", err)
		}
	}
	if provider.Runs() != 1 {
		t.Errorf("%d runs", provider.Runs())
	}
}

func TestBackoff(t *testing.T) {
	random := 0.0
	broken := true
	source, script, clock := scripted(t, execcredential.Options{Rand: func() float64 { return random }}, nil)
	script.next = func(int) (execcredential.Material, error) {
		if broken {
			return execcredential.Material{}, errors.New("broken")
		}
		return execcredential.Material{Token: "abc", Expires: clock.Now().Add(time.Hour)}, nil
	}
	for i, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		if _, err := source.Get(t.Context()); err == nil || err.Error() != "broken" {
			t.Fatalf("run %d: error %v", i+1, err)
		}
		if got := source.Status(); !got.Next.Equal(clock.Now().Add(pause)) || got.Failures != i+1 {
			t.Errorf("after %d failures: %+v, want a pause of %s", i+1, got, pause)
		}
		clock.Advance(pause - 1)
		e := (*execcredential.BackoffError)(nil)
		if _, err := source.Get(t.Context()); !errors.As(err, &e) || int(script.runs.Load()) != i+1 {
			t.Fatalf("before the pause is over: error %v, %d runs", err, script.runs.Load())
		}
		clock.Advance(1)
	}
	random = 0.999999
	if _, err := source.Get(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if pause := source.Status().Next.Sub(clock.Now()); pause < 30*time.Second || pause > 31*time.Second {
		t.Errorf("with jitter the pause is %s", pause)
	}
	broken = false
	must(t, errOf(source.Refresh(t.Context())), "an explicit refresh in the pause")
	mustGet(t, source, "abc")
	broken = true
	clock.Advance(time.Hour)
	_, _ = source.Get(t.Context())
	if got := source.Status(); !got.Next.Before(clock.Now().Add(time.Second)) {
		t.Errorf("a success did not reset the pause: %+v", got)
	}
}

// The end of a request's context ends its waiting. The run goes on, for the others and for the next.
func TestContextDetachesTheRequestOnly(t *testing.T) {
	running, release := make(chan bool), make(chan bool)
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		running <- true
		<-release
		return exectest.Token("abc", time.Time{})
	})
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	ctx, cancel := context.WithCancel(t.Context())
	impatient, patient := make(chan error), make(chan error)
	go func() { _, err := source.Get(ctx); impatient <- err }()
	<-running
	go func() { _, err := source.Get(context.Background()); patient <- err }()
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	release <- true
	expect(t, <-patient)
	mustGet(t, source, "abc")
	if provider.Runs() != 1 {
		t.Errorf("%d runs", provider.Runs())
	}
}

// Output that has expired already serves those who waited for it, and all who come in the pause after it, which doubles up to a second.
func TestExpiredOutput(t *testing.T) {
	source, script, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run), Expires: start.Add(-time.Hour)}, nil
	})
	for i, pause := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second} {
		for _, err := range storm(100, func() error { return errOf(source.Get(t.Context())) }) {
			expect(t, err)
		}
		mustGet(t, source, name(i+1))
		clock.Advance(pause - 1)
		mustGet(t, source, name(i+1))
		clock.Advance(1)
	}
	mustGet(t, source, name(8))
	if script.runs.Load() != 8 {
		t.Errorf("%d runs for 715 requests in 3.5 seconds", script.runs.Load())
	}
}

// A failure ends that: what has expired is not used when the program fails.
func TestExpiredOutputIsNotUsedAfterAFailure(t *testing.T) {
	source, _, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		if run > 1 {
			return execcredential.Material{}, errors.New("broken")
		}
		return execcredential.Material{Token: "a", Expires: start.Add(-time.Hour)}, nil
	})
	mustGet(t, source, "a")
	clock.Advance(time.Second)
	for range 2 {
		if got, err := source.Get(t.Context()); err == nil {
			t.Errorf("credential %v", got)
		}
	}
}

func TestRefreshDoesNotWaitForThePause(t *testing.T) {
	source, _, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run), Expires: start.Add(-time.Hour)}, nil
	})
	mustGet(t, source, "a")
	if got, err := source.Refresh(t.Context()); err != nil || got.Token() != "b" {
		t.Errorf("credential %v, error %v", got, err)
	}
	mustGet(t, source, "b")
}

func TestRefreshAhead(t *testing.T) {
	runs := make(chan execcredential.Run, 10)
	fail := false
	source, script, clock := scripted(t, execcredential.Options{RefreshAhead: 10 * time.Minute, Rand: func() float64 { return 0.5 }, OnRun: func(r execcredential.Run) { runs <- r }}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		if fail {
			return execcredential.Material{}, errors.New("broken")
		}
		return execcredential.Material{Token: name(run), Expires: clock.Now().Add(time.Hour)}, nil
	}
	mustGet(t, source, "a")
	<-runs
	clock.Advance(50*time.Minute - 1)
	mustGet(t, source, "a")
	if len(runs) != 0 {
		t.Error("refreshed too early")
	}
	fail = true
	clock.Advance(1)
	mustGet(t, source, "a") // the old one, at once
	if r := <-runs; r.Reason != execcredential.Ahead || r.Err == nil {
		t.Errorf("run %+v", r)
	}
	mustGet(t, source, "a")
	if got := script.runs.Load(); got != 2 {
		t.Errorf("%d runs: the failure was not remembered", got)
	}
	fail = false
	clock.Advance(time.Second)
	mustGet(t, source, "a")
	<-runs
	mustGet(t, source, "c")
	// Never beyond its expiry, even if refreshing ahead fails until then.
	fail = true
	clock.Advance(time.Hour)
	if _, err := source.Get(t.Context()); err == nil {
		t.Error("an expired credential was used")
	}
}

func TestRefreshAheadOfAShortLife(t *testing.T) {
	source, script, clock := scripted(t, execcredential.Options{RefreshAhead: time.Hour, Rand: func() float64 { return 0.5 }}, nil)
	script.next = func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run), Expires: clock.Now().Add(10 * time.Minute)}, nil
	}
	mustGet(t, source, "a")
	clock.Advance(5*time.Minute - 1)
	mustGet(t, source, "a")
	if script.runs.Load() != 1 {
		t.Error("refreshed in the first half of its life")
	}
}

func TestRejectedIsBounded(t *testing.T) {
	source, script, clock := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: "same"}, nil
	})
	mustGet(t, source, "same")
	rejected, _ := source.Get(t.Context())
	reject := func(wantRuns int32) {
		t.Helper()
		got, err := source.Rejected(t.Context(), rejected)
		if got != nil || err != nil || script.runs.Load() != wantRuns {
			t.Fatalf("at %s: credential %v, error %v, %d runs, want %d", clock.Now().Sub(start), got, err, script.runs.Load(), wantRuns)
		}
	}
	reject(2)
	reject(2)
	for i, interval := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 300 * time.Second, 300 * time.Second} {
		clock.Advance(interval - 1)
		reject(int32(i + 2))
		clock.Advance(1)
		reject(int32(i + 3))
	}
	clock.Advance(10 * time.Minute)
	reject(10)
	clock.Advance(10 * time.Second)
	reject(11) // after a long silence, ten seconds again
}

func TestRejectedOldCredential(t *testing.T) {
	source, script, _ := scripted(t, execcredential.Options{}, func(run int) (execcredential.Material, error) {
		return execcredential.Material{Token: name(run)}, nil
	})
	old := need(source.Get(t.Context()))(t)
	for range 3 {
		got, err := source.Rejected(t.Context(), old)
		if err != nil || got.Token() != "b" || script.runs.Load() != 2 {
			t.Fatalf("credential %v, error %v, %d runs", got, err, script.runs.Load())
		}
	}
}

func TestPanicOfAProvider(t *testing.T) {
	source, _, _ := scripted(t, execcredential.Options{}, func(int) (execcredential.Material, error) { panic("oh") })
	if _, err := source.Get(t.Context()); err == nil {
		t.Error("no error")
	}
}

func TestCloseEndsRunsAndWaiting(t *testing.T) {
	running := make(chan bool)
	provider := exectest.NewProvider(t, func(exectest.Call) exectest.Answer {
		running <- true
		return exectest.Answer{Hang: true, LeaveBehind: true}
	})
	pool, _ := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, provider.Config())
	waiting := make(chan error)
	go func() { _, err := source.Get(context.Background()); waiting <- err }()
	<-running
	child := <-provider.LeftBehind()
	must(t, pool.Close())
	if err := <-waiting; !errors.Is(err, execcredential.ErrClosed) {
		t.Errorf("error %v", err)
	}
	<-provider.Calls()[0].Ended
	<-child.Ended
	for what, f := range map[string]func() error{
		"Get":      func() error { return errOf(source.Get(t.Context())) },
		"Refresh":  func() error { return errOf(source.Refresh(t.Context())) },
		"Rejected": func() error { return errOf(source.Rejected(t.Context(), nil)) },
		"Source":   func() error { return errOf(pool.Source(provider.Config())) },
	} {
		if err := f(); !errors.Is(err, execcredential.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	expect(t, pool.Close())
}
