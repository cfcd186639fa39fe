package discovery

import (
	"strconv"
	"sync/atomic"
	"time"
)

// overdueMaxAge is the max-age while a change is overdue: documents may be that late anyway (keys.DefaultStaleness).
const overdueMaxAge = time.Minute

// freshness makes the Cache-Control of answers. Relying parties keep documents for the longest max-age, but never beyond
// the next change of the documents.
type freshness struct {
	longest    int64 // seconds
	full       []string
	now        func() time.Time
	nextChange atomic.Pointer[time.Time]
	// last is the header that was made last, since answers within one second have the same.
	last atomic.Pointer[maxAgeHeader]
}

type maxAgeHeader struct {
	seconds int64
	value   []string
}

func newFreshness(longest time.Duration, now func() time.Time) freshness {
	if now == nil {
		now = time.Now
	}
	seconds := int64(longest / time.Second)
	return freshness{longest: seconds, full: maxAge(seconds), now: now}
}

func (f *freshness) cacheControl() []string {
	next := f.nextChange.Load()
	if next == nil || next.IsZero() {
		return f.full
	}
	left := next.Sub(f.now())
	if left <= 0 {
		left = overdueMaxAge
	}
	seconds := int64(left / time.Second)
	if seconds >= f.longest {
		return f.full
	}
	if last := f.last.Load(); last != nil && last.seconds == seconds {
		return last.value
	}
	made := &maxAgeHeader{seconds: seconds, value: maxAge(seconds)}
	f.last.Store(made)
	return made.value
}

func maxAge(seconds int64) []string {
	return []string{"public, max-age=" + strconv.FormatInt(seconds, 10)}
}
