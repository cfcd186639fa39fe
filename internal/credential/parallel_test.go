package credential_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/cache"
)

// together lets clients request at once: the source answers when all others wait for the first.
func (w *world) together(count int, info credential.ExecInfo) (tokens []string, errs []error) {
	w.t.Helper()
	waiting, once := make(chan struct{}), sync.Once{}
	w.screen.onShown = func(shown int) {
		if shown == count-1 {
			close(waiting)
		}
	}
	w.authority.during = func() {
		once.Do(func() {
			select {
			case <-waiting:
			case <-time.After(5 * time.Minute):
				w.t.Error("the others do not wait")
			}
		})
	}
	tokens, errs = make([]string, count), make([]error, count)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			c, err := w.serve(100+i, info)
			tokens[i], errs[i] = c.Token.Reveal(), err
		})
	}
	all.Wait()
	w.authority.during, w.screen.onShown = nil, nil
	return tokens, errs
}

func TestEightAtOnceAreOneLogin(t *testing.T) {
	for name, lifetime := range map[string]time.Duration{"an hour": time.Hour, "shorter than the margin": time.Second, "unknown": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.authority.lifetime = lifetime
			tokens, errs := w.together(8, interactively())
			for i := range tokens {
				if errs[i] != nil || tokens[i] != "token-1" {
					t.Errorf("client %d got %q, %v", i, tokens[i], errs[i])
				}
			}
			if w.authority.attempts != 1 {
				t.Errorf("%d attempts", w.authority.attempts)
			}
			w.shown("waiting for process")
		})
	}
}

// Those who waited for a log-in that failed do not each begin one, nor do their retries.
func TestEightAtOnceShareAFailure(t *testing.T) {
	w := newWorld(t)
	w.authority.away = true
	_, errs := w.together(8, interactively())
	for range 5 {
		for i := range errs {
			errs = append(errs, w.wantError(100+i%8, interactively(), nil))
		}
	}
	for i, err := range errs {
		if !errors.Is(err, credential.ErrNeedsPerson) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if w.authority.asked != 1 {
		t.Errorf("%d pages were opened", w.authority.asked)
	}
}

// Those who waited with a revoked credential are served the one that replaces it.
func TestEightRefusedAtOnceAreOneRefresh(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.want(100+i, "token-1")
	}
	tokens, errs := w.together(8, interactively())
	for i := range tokens {
		if errs[i] != nil || tokens[i] != "token-2" {
			t.Errorf("client %d got %q, %v", i, tokens[i], errs[i])
		}
	}
	if w.authority.refreshes != 1 || w.authority.logins != 1 {
		t.Errorf("%d refreshes, %d logins", w.authority.refreshes, w.authority.logins)
	}
}

func TestWaitingHasADeadline(t *testing.T) {
	w := newWorld(t)
	w.want(1, "token-1")
	folder, err := cache.Open(w.folder)
	w.must(err)
	defer func() { _ = folder.Close() }()
	lock, err := folder.Lock(t.Context(), cache.NameOf(w.authority.Key()), cache.Wait{})
	w.must(err)
	defer lock.Release()
	w.lockTime = time.Millisecond

	w.pass(time.Hour - time.Second)
	w.want(2, "token-1")
	w.shown("served is the credential that is kept")
	// A client that requested a new one has not got it.
	if _, err := w.provider(client(5)).Renew(t.Context(), w.authority, interactively()); !errors.Is(err, cache.ErrBusy) {
		t.Errorf("renewed: %v", err)
	}
	w.pass(time.Hour)
	w.wantError(3, interactively(), cache.ErrBusy)
	if w.authority.attempts != 1 {
		t.Errorf("%d attempts", w.authority.attempts)
	}

	// A client that goes away does not wait for the deadline.
	w.lockTime = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	w.screen.onShown = func(int) { cancel() }
	if _, err := w.provider(client(4)).Serve(ctx, w.authority, interactively()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A credential obtained while a client waited is served to it, but not if it has expired by then.
func TestWhatExpiredWhileWaitingIsNotServed(t *testing.T) {
	for name, c := range map[string]struct {
		passes time.Duration
		want   string
	}{"valid": {time.Second, "token-1"}, "expired": {2 * time.Second, "token-2"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.authority.lifetime = 2 * time.Second
			folder, err := cache.Open(w.folder)
			w.must(err)
			defer func() { _ = folder.Close() }()
			lock, err := folder.Lock(t.Context(), cache.NameOf(w.authority.Key()), cache.Wait{})
			w.must(err)
			w.screen.onShown = func(int) {
				lock.Release()
				w.want(1, "token-1")
				w.pass(c.passes)
			}
			w.want(2, c.want)
			w.shown("waiting for process")
		})
	}
}
