package testkit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// ended is a test that has failed.
type ended struct {
	testing.TB
	because string
}

func (e *ended) Fatal(args ...any)                 { e.because = fmt.Sprint(args...); panic(e) }
func (e *ended) Fatalf(format string, args ...any) { e.Fatal(fmt.Sprintf(format, args...)) }

type never struct{ error }

func (never) Final() {}

func TestWait(t *testing.T) {
	for name, test := range map[string]struct {
		check func(ctx context.Context, tried int) error
		tries int
		want  string // of the failure
	}{
		"at once": {func(context.Context, int) error { return nil }, 1, ""},
		"in the end": {func(_ context.Context, tried int) error {
			return map[bool]error{tried < 3: errors.New("not yet")}[true]
		}, 3, ""},
		"never": {func(context.Context, int) error { return fmt.Errorf("wrapped: %w", never{errors.New("no way")}) }, 1, "wrapped: no way"},
		"the last complaint is not that the time is up": {func(ctx context.Context, tried int) error {
			if tried == 1 {
				return errors.New("not yet")
			}
			<-ctx.Done()
			return ctx.Err()
		}, 2, "gave up waiting: not yet"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tried, e := 0, &ended{TB: t}
				func() {
					defer func() {
						if failed := recover(); failed != nil && failed != any(e) {
							panic(failed)
						}
					}()
					WaitFor(e, time.Minute, func(ctx context.Context) error { tried++; return test.check(ctx, tried) })
				}()
				if tried != test.tries || e.because != test.want {
					t.Errorf("%d tries, then %q, want %d and %q", tried, e.because, test.tries, test.want)
				}
			})
		})
	}
}

func TestPauses(t *testing.T) {
	for what, test := range map[string]struct{ look, waited, want time.Duration }{
		"at first":                       {time.Millisecond, time.Millisecond, longPause},
		"a program":                      {300 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond},
		"what comes after half a minute": {time.Millisecond, 30 * time.Second, 1500 * time.Millisecond},
		"a slow program":                 {time.Minute, time.Minute, longestPause},
		"what comes late":                {time.Millisecond, 4 * time.Minute, longestPause},
	} {
		if got := pauseAfter(longPause, test.look, test.waited); got != test.want {
			t.Errorf("%s: %s, want %s", what, got, test.want)
		}
		if got := pauseAfter(shortPause, test.look, test.waited); got != shortPause {
			t.Errorf("%s, in this process: %s, want %s", what, got, shortPause)
		}
	}
}
