package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Each call is answered from a read that began after it, and many calls make few reads.
func TestLiveReadsBeginAfterTheyAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var version, reads int
		l := newLive(func(context.Context, string) (int, error) {
			mu.Lock()
			seen := version
			reads++
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // of synctest's clock
			return seen, nil
		})
		var waiting sync.WaitGroup
		for i := range 400 {
			waiting.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				mu.Lock()
				version++
				asked := version
				mu.Unlock()
				if got, err := l.get(t.Context(), "key"); err != nil || got < asked {
					t.Errorf("called at version %d, got %d, %v", asked, got, err)
				}
			})
		}
		waiting.Wait()
		if reads < 2 || reads > 8 {
			t.Errorf("%d reads for 400 calls within 400 ms, of 100 ms each", reads)
		}
		synctest.Wait()
		if len(l.lines) != 0 {
			t.Errorf("%d keys are kept without readers", len(l.lines))
		}
	})
}

// A connection that hangs costs its callers their time, and others at most readTimeout.
func TestLiveReadsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := true
		l := newLive(func(ctx context.Context, _ string) (string, error) {
			if hang {
				hang = false
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "read", nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the caller's time is over", err)
		}
		began := time.Now()
		if got, err := l.get(t.Context(), "key"); got != "read" || err != nil || time.Since(began) > readTimeout {
			t.Errorf("%q, %v after %s", got, err, time.Since(began))
		}
	})
}

func TestUsesAreBounded(t *testing.T) {
	now := time.Unix(0, 0)
	s := newUses(all{}, func() time.Time { return now })
	for i := range maxUses + 10 {
		if i == maxUses {
			now = now.Add(usesKept)
		}
		if ok, _, err := s.allows(t.Context(), use{name: fmt.Sprint(i), user: accountSubject("ns", "account")}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(s.allowed) != 10 {
		t.Errorf("%d rights are remembered, want the 10 that are not over", len(s.allowed))
	}
	for i := range 2 * maxUses {
		if _, _, err := s.allows(t.Context(), use{name: fmt.Sprint(i), user: accountSubject("ns", "other")}); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.allowed) > maxUses {
		t.Errorf("%d rights are remembered", len(s.allowed))
	}
}

// all allows everything.
type all struct{}

func (all) Review(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
}

func TestTimeout(t *testing.T) {
	for parameter, want := range map[string]time.Duration{
		"10s": 9500 * time.Millisecond, "1s": 900 * time.Millisecond, "5m": 29500 * time.Millisecond,
		"": 9500 * time.Millisecond, "-1s": 9500 * time.Millisecond, "soon": 9500 * time.Millisecond,
	} {
		if got := timeout(parameter); got != want {
			t.Errorf("timeout=%s: %s, want %s", parameter, got, want)
		}
	}
}
