package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// readTimeout bounds a read that several wait for: a connection that hangs must not hold them all for longer.
const readTimeout = 4 * time.Second

// live reads from an API, never from memory. Of one key there is one read at a time; callers that come during it wait for
// the next, which serves them all. So each answer is from a read that began after the call.
type live[K comparable, T any] struct {
	read func(ctx context.Context, key K) (T, error)

	mu    sync.Mutex
	lines map[K]*line[T]
}

// line is the queue of one key: it exists while there are reads of it.
type line[T any] struct{ next *flight[T] }

// flight is one read, and what came of it once done is closed.
type flight[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newLive[K comparable, T any](read func(context.Context, K) (T, error)) *live[K, T] {
	return &live[K, T]{read: read, lines: map[K]*line[T]{}}
}

// get reads. The first caller of a key reads in its own goroutine. A caller that waits for the next read and gives up stops
// waiting; the read goes on for the others.
func (l *live[K, T]) get(ctx context.Context, key K) (T, error) {
	l.mu.Lock()
	queue, reading := l.lines[key]
	if !reading {
		queue = &line[T]{}
		l.lines[key] = queue
		l.mu.Unlock()
		defer l.leave(context.WithoutCancel(ctx), key, queue)
		return l.once(ctx, key)
	}
	if queue.next == nil {
		queue.next = &flight[T]{done: make(chan struct{})}
	}
	f := queue.next
	l.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	}
}

func (l *live[K, T]) once(ctx context.Context, key K) (T, error) {
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return l.read(reading, key)
}

// leave ends the queue of a key, or has it drained where callers came meanwhile.
func (l *live[K, T]) leave(ctx context.Context, key K, queue *line[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue.next == nil {
		delete(l.lines, key)
		return
	}
	go l.drain(ctx, key, queue)
}

// drain reads until no caller waits.
func (l *live[K, T]) drain(ctx context.Context, key K, queue *line[T]) {
	for {
		l.mu.Lock()
		f := queue.next
		queue.next = nil
		if f == nil {
			delete(l.lines, key)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		f.value, f.err = l.once(ctx, key)
		close(f.done)
	}
}
