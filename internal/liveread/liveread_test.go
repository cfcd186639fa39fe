package liveread

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Each call is answered from a read that began after it, and many calls make few reads.
func TestLiveReadsBeginAfterTheyAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var version, reads int
		var l Reads[string, int]
		read := func(context.Context) (int, error) {
			mu.Lock()
			seen := version
			reads++
			mu.Unlock()
			time.Sleep(100 * time.Millisecond) // of synctest's clock
			return seen, nil
		}
		var waiting sync.WaitGroup
		for i := range 400 {
			waiting.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				mu.Lock()
				version++
				asked := version
				mu.Unlock()
				if got, err := l.Get(t.Context(), "key", read); err != nil || got < asked {
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

// A connection that hangs costs its callers their time, and others at most timeout.
func TestLiveReadsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := true
		var l Reads[string, string]
		read := func(ctx context.Context) (string, error) {
			if hang {
				hang = false
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "read", nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Get(ctx, "key", read); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the caller's time is over", err)
		}
		began := time.Now()
		if got, err := l.Get(t.Context(), "key", read); got != "read" || err != nil || time.Since(began) > timeout {
			t.Errorf("%q, %v after %s", got, err, time.Since(began))
		}
	})
}
