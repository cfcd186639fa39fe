package authority

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/credence-id/credence/internal/liveread"
)

const (
	// kept is for how long a right that was taken away still counts; Kubernetes keeps its own reviews as long.
	kept       = 10 * time.Second
	maxAllowed = 4096
)

// Live has questions reviewed, the same one once at a time for all who put it. That a subject is allowed is remembered for a moment; a
// denial is never remembered, so that a new right counts at once.
type Live struct {
	reviewer Reviewer
	now      func() time.Time
	reads    liveread.Reads[string, Answer]

	mu      sync.Mutex
	allowed map[string]time.Time // questions, and until when
}

// NewLive returns the questions to a Reviewer.
func NewLive(reviewer Reviewer, now func() time.Time) *Live {
	return &Live{reviewer: reviewer, now: now, allowed: map[string]time.Time{}}
}

// Ask answers a question. An error is a review that could not be made.
func (l *Live) Ask(ctx context.Context, q Question) (Answer, error) {
	key := q.key()
	if l.remembered(key) {
		return Answer{Allowed: true}, nil
	}
	answer, err := l.reads.Get(ctx, key, func(ctx context.Context) (Answer, error) {
		// Callers that waited for their turn are served by the review before them.
		if l.remembered(key) {
			return Answer{Allowed: true}, nil
		}
		asked := l.now()
		answer, err := ask(ctx, l.reviewer, q)
		if err == nil && answer.Allowed {
			l.remember(key, asked.Add(kept))
		}
		return answer, err
	})
	return answer, failed(q, err)
}

func (l *Live) remembered(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.allowed[key]
	return known && l.now().Before(until)
}

func (l *Live) remember(key string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.allowed) >= maxAllowed {
		l.forget()
	}
	l.allowed[key] = until
}

// forget drops what is over; if that is nothing, everything, which costs no more than reviews.
func (l *Live) forget() {
	now := l.now()
	maps.DeleteFunc(l.allowed, func(_ string, until time.Time) bool { return !now.Before(until) })
	if len(l.allowed) >= maxAllowed {
		clear(l.allowed)
	}
}
