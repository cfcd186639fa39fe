package execcredential_test

import (
	"testing"
	"time"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/exectest"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var start = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// newPool returns a pool with a clock that stands still, whose programs' messages are discarded.
func newPool(t testing.TB, o execcredential.Options) (*execcredential.Pool, *exectest.Clock) {
	t.Helper()
	clock := exectest.NewClock(start)
	o.Clock = clock
	if o.Rand == nil {
		o.Rand = func() float64 { return 0 }
	}
	if o.Stderr == nil {
		o.Stderr = discard{}
	}
	pool := need(execcredential.NewPool(o))(t)
	t.Cleanup(func() { _ = pool.Close() })
	return pool, clock
}

func sourceOf(t testing.TB, pool *execcredential.Pool, c execcredential.Config) *execcredential.Source {
	t.Helper()
	return need(pool.Source(c))(t)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
