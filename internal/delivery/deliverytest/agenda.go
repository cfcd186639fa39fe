package deliverytest

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Agenda queues Secrets by the time at which they are looked at, as the queue of a controller does: the earliest time of a Secret counts.
type Agenda struct {
	due   map[types.NamespacedName]time.Time
	queue byTime
}

type item struct {
	key types.NamespacedName
	at  time.Time
}

// Add queues a Secret.
func (a *Agenda) Add(key types.NamespacedName, at time.Time) {
	if before, ok := a.due[key]; ok && !at.Before(before) {
		return
	}
	if a.due == nil {
		a.due = map[types.NamespacedName]time.Time{}
	}
	a.due[key] = at
	heap.Push(&a.queue, item{key, at})
}

// Next takes the Secret that is due first; false if none is due until a time.
func (a *Agenda) Next(until time.Time) (key types.NamespacedName, at time.Time, ok bool) {
	for len(a.queue) > 0 && !a.queue[0].at.After(until) {
		next := heap.Pop(&a.queue).(item)
		if current, queued := a.due[next.key]; queued && current.Equal(next.at) {
			delete(a.due, next.key)
			return next.key, next.at, true
		}
	}
	return types.NamespacedName{}, time.Time{}, false
}

// Follow queues the Secrets that an outage lets go on.
func (w *World) Follow(a *Agenda) {
	w.Secrets.Outage.Add = func(key types.NamespacedName, after time.Duration) { a.Add(key, w.Clock.Now().Add(after)) }
}

// Drive looks at Secrets when they are due, until a time, and returns how often it did.
func (w *World) Drive(a *Agenda, until time.Time) (looks int) {
	w.t.Helper()
	for key, at, ok := a.Next(until); ok; key, at, ok = a.Next(until) {
		if at.After(w.Clock.Now()) {
			w.Clock.SetTime(at)
		}
		looks++
		if after := w.Look(key.String()); after > 0 {
			a.Add(key, w.Clock.Now().Add(after))
		}
	}
	w.Clock.SetTime(until)
	return looks
}

type byTime []item

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(x any)        { *q = append(*q, x.(item)) }
func (q *byTime) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
