// Package liveread reads from an API for many callers at once: in go a key and a function that reads, out comes an answer from a read that
// began after the call. It remembers nothing.
package liveread

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// timeout bounds a read that several wait for: a connection that hangs must not hold them all for longer.
const timeout = 4 * time.Second

// Reads are reads from an API, never from memory. Of one key there is one read at a time; callers that come during it wait for
// the next, which serves them all. The zero value is ready.
type Reads[K comparable, T any] struct {
	mu    sync.Mutex
	lines map[K]*line[T]
}

// line is the queue of one key: it exists while there are reads of it.
type line[T any] struct{ next *flight[T] }

// flight is one read, and what came of it once done is closed.
type flight[T any] struct {
	read  func(context.Context) (T, error)
	done  chan struct{}
	value T
	err   error
}

// Get reads; the read of a key is the same for all callers. The first caller of a key reads in its own goroutine. A caller that waits
// for the next read and gives up stops waiting; the read goes on for the others.
func (r *Reads[K, T]) Get(ctx context.Context, key K, read func(context.Context) (T, error)) (T, error) {
	r.mu.Lock()
	queue, reading := r.lines[key]
	if !reading {
		if r.lines == nil {
			r.lines = map[K]*line[T]{}
		}
		queue = &line[T]{}
		r.lines[key] = queue
		r.mu.Unlock()
		defer r.leave(context.WithoutCancel(ctx), key, queue)
		return once(ctx, read)
	}
	if queue.next == nil {
		queue.next = &flight[T]{read: read, done: make(chan struct{})}
	}
	f := queue.next
	r.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	}
}

func once[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	reading, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return read(reading)
}

// leave ends the queue of a key, or has it drained where callers came meanwhile.
func (r *Reads[K, T]) leave(ctx context.Context, key K, queue *line[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if queue.next == nil {
		delete(r.lines, key)
		return
	}
	go r.drain(ctx, key, queue)
}

// drain reads until no caller waits.
func (r *Reads[K, T]) drain(ctx context.Context, key K, queue *line[T]) {
	for {
		r.mu.Lock()
		f := queue.next
		queue.next = nil
		if f == nil {
			delete(r.lines, key)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		f.value, f.err = once(ctx, f.read)
		close(f.done)
	}
}
