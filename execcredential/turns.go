package execcredential

import (
	"context"
	"os"
	"sync"
)

// prompts are the turns of interactive runs at the terminals of this process. They belong to no Pool, because a person who sees two
// prompts at once doesn't know of pools. The queues belong to runs, and are gone with them.
var prompts = turns{queues: map[terminalID]*queue{}}

// turns let one run at a time have a terminal.
type turns struct {
	mu     sync.Mutex
	queues map[terminalID]*queue
}

// queue is one terminal, for as long as a run has it or waits for it.
type queue struct {
	turn  chan struct{} // holds one: the run that has the terminal
	users int
}

// take waits until no other run has the terminal that file is, and returns what gives it back. The error is the cause of the end of ctx.
func (t *turns) take(ctx context.Context, file *os.File) (done func(), err error) {
	terminal := terminalOf(file)
	t.mu.Lock()
	q := t.queues[terminal]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		t.queues[terminal] = q
	}
	q.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(t.queues, terminal)
		}
	}
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
