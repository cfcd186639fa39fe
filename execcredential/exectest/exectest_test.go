package exectest_test

import (
	"io"
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestMain(m *testing.M) { exectest.Main(m) }

// An example of a user's test: a program, a clock, and what happens when a token expires.
func TestProvider(t *testing.T) {
	clock := exectest.NewClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	provider := exectest.NewProvider(t, func(call exectest.Call) exectest.Answer {
		return exectest.Token("token-for-"+call.Args[0], clock.Now().Add(time.Hour))
	})
	pool, err := execcredential.NewPool(execcredential.Options{Clock: clock, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	config := provider.Config()
	config.Args = []string{"jane"}
	source, err := pool.Source(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, wantRuns := range []int{1, 1, 2} {
		got, err := source.Get(t.Context())
		if err != nil || got.Token() != "token-for-jane" || provider.Runs() != wantRuns {
			t.Fatalf("credential %v, error %v, %d runs", got, err, provider.Runs())
		}
		clock.Advance(30 * time.Minute)
	}
}

func TestClock(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := exectest.NewClock(start)
	rang := make(chan bool, 1)
	stop := clock.AfterFunc(time.Minute, func() { rang <- true })
	clock.Advance(time.Minute - 1)
	select {
	case <-rang:
		t.Error("too early")
	default:
	}
	clock.Advance(1)
	<-rang
	if stop() {
		t.Error("stopped what had begun")
	}
	stop = clock.AfterFunc(time.Minute, func() { rang <- true })
	if !stop() {
		t.Error("not stopped")
	}
	clock.Advance(time.Hour)
	if len(rang) != 0 || !clock.Now().Equal(start.Add(time.Hour+time.Minute)) {
		t.Errorf("rang %d times, the time is %s", len(rang), clock.Now())
	}
}
