package progress

import (
	"fmt"
	"sync"
	"time"
)

// Part is how long one step took, in seconds.
type Part struct {
	Name    string  `json:"name"`
	Start   float64 `json:"startSeconds"`
	Seconds float64 `json:"seconds"`
}

// Tracker turns what is done into events and remembers how long each step took. It is safe for concurrent use.
type Tracker struct {
	sink  Sink
	now   func() time.Time
	since time.Time

	mu    sync.Mutex
	parts []Part
}

// NewTracker returns a Tracker whose operation begins now.
func NewTracker(sink Sink, now func() time.Time) *Tracker {
	return &Tracker{sink: sink, now: now, since: now()}
}

// Elapsed is the time since the operation began.
func (t *Tracker) Elapsed() time.Duration { return t.now().Sub(t.since) }

// Begin shows that a step begins, and returns what to call with its outcome when it has ended well. Of a step that fails
// no end is shown: the error ends the operation.
func (t *Tracker) Begin(step, text string) (end func(outcome string)) {
	began := t.Elapsed()
	t.show(Event{What: Begin, Step: step, Text: text, At: began})
	return func(outcome string) {
		at := t.Elapsed()
		t.mu.Lock()
		t.parts = append(t.parts, Part{Name: step, Start: began.Seconds(), Seconds: (at - began).Seconds()})
		t.mu.Unlock()
		t.show(Event{What: End, Step: step, Text: outcome, At: at, Took: at - began})
	}
}

// Note shows a line that is not a step.
func (t *Tracker) Note(format string, arguments ...any) {
	t.show(Event{What: Note, Text: fmt.Sprintf(format, arguments...), At: t.Elapsed()})
}

// reasonEvery is how long something may be waited for without a word.
const reasonEvery = 10 * time.Second

// Reasons returns what to call with each failure of what is tried again: it shows every ten seconds why it is waited for.
func (t *Tracker) Reasons(what string) func(error) {
	shown := t.Elapsed()
	return func(err error) {
		if at := t.Elapsed(); at-shown >= reasonEvery {
			shown = at
			t.Note("still waiting for %s: %v", what, err)
		}
	}
}

// Close ends the operation with Ready or Failed.
func (t *Tracker) Close(what What, text string) {
	t.show(Event{What: what, Text: text, At: t.Elapsed()})
}

// Parts returns the steps that have ended, in the order of their ends.
func (t *Tracker) Parts() []Part {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Part(nil), t.parts...)
}

func (t *Tracker) show(event Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sink.Show(event)
}
