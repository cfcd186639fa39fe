package keys

import (
	"container/heap"
	"time"
)

// event is something that happens at a time.
type event struct {
	at  time.Duration
	seq int
	run func()
}

// queue has the next event first; of two at the same time the one that was added first.
type queue struct {
	events []event
	added  int
}

func (w *world) after(delay time.Duration, run func()) {
	w.queue.added++
	heap.Push(&w.queue, event{at: w.now + max(delay, 0), seq: w.queue.added, run: run})
}

func (q queue) Len() int { return len(q.events) }
func (q queue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (q queue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }
func (q *queue) Push(x any)   { q.events = append(q.events, x.(event)) }
func (q *queue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	return e
}
