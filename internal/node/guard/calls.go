package guard

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errEnding is the answer to streams that never end. Kubelets repeat them.
var errEnding = status.Error(codes.Unavailable, "credence-node guard ends")

// calls counts the calls in flight.
type calls struct {
	inFlight *atomic.Int64
	ended    chan struct{} // has one, or the last one has not been seen
}

func newCalls() calls { return calls{new(atomic.Int64), make(chan struct{}, 1)} }

func (c calls) begin() { c.inFlight.Add(1) }

func (c calls) end() {
	c.inFlight.Add(-1)
	select {
	case c.ended <- struct{}{}:
	default:
	}
}

// wait returns when no call is in flight, or at the limit.
func (c calls) wait(limit <-chan time.Time) {
	for c.inFlight.Load() > 0 {
		select {
		case <-c.ended:
		case <-limit:
			return
		}
	}
}
