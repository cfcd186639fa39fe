package renewal

import "time"

// The waits after failures: they double from the first to the last.
const (
	firstWait = time.Second
	lastWait  = 5 * time.Minute
)

// Backoff is how long to wait after so many failures in a row, at least one: doubled each time up to five minutes, drawn from the
// upper half, so that requests that failed together do not come back together.
func Backoff(failures int, random func() float64) time.Duration {
	wait := lastWait
	if failures < 10 {
		wait = min(lastWait, firstWait<<max(failures-1, 0))
	}
	return wait/2 + time.Duration(float64(wait/2)*random())
}

// The spread of the waiting Secrets at the end of an outage.
const (
	spreadEach = 10 * time.Millisecond
	spreadMost = time.Minute
)

// Spread returns when the Secret at a position, of so many that waited, goes on after an outage: in order, evenly over at most a
// minute.
func Spread(position, of int) time.Duration {
	if of <= 0 {
		return 0
	}
	over := min(spreadMost, time.Duration(of)*spreadEach)
	return time.Duration(float64(over) * float64(position) / float64(of))
}
