package progress

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Event is one thing to show.
type Event struct {
	What What `json:"what"`
	// Step names the part that begins or ends.
	Step string `json:"step,omitempty"`
	// Text is the action (Begin), the result (End), or a note (Note).
	Text string `json:"text,omitempty"`
	// At is the time since the operation began, Took the time of the part that ended.
	At   time.Duration `json:"at"`
	Took time.Duration `json:"took,omitempty"`
}

// A What is the kind of an Event.
type What string

// The kinds of events. Ready and Failed close the operation: nothing follows.
const (
	Begin  What = "begin"
	End    What = "end"
	Note   What = "note"
	Ready  What = "ready"
	Failed What = "failed"
)

// Sink is where events go. Show is called by one goroutine at a time.
type Sink interface{ Show(Event) }

// Encoder is a Sink that writes one JSON object a line, for Decode in another process.
type Encoder struct{ w io.Writer }

// NewEncoder returns an Encoder that writes to w. The reader may be gone: errors of w are dropped.
func NewEncoder(w io.Writer) Encoder { return Encoder{w: w} }

// Show implements Sink.
func (e Encoder) Show(event Event) {
	if line, err := json.Marshal(event); err == nil {
		_, _ = e.w.Write(append(line, '\n'))
	}
}

// Decode shows in sink what an Encoder writes, until the operation closes (Ready or Failed), which it returns. An end
// without either is io.ErrUnexpectedEOF.
func Decode(r io.Reader, sink Sink) (Event, error) {
	decoder := json.NewDecoder(r)
	for {
		var event Event
		if err := decoder.Decode(&event); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return Event{}, fmt.Errorf("read progress: %w", err)
		}
		if event.What == Ready || event.What == Failed {
			return event, nil
		}
		sink.Show(event)
	}
}

// Sinks shows every event in several places.
type Sinks []Sink

// Show implements Sink.
func (s Sinks) Show(event Event) {
	for _, sink := range s {
		sink.Show(event)
	}
}
