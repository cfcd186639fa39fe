package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// IsTerminal reports whether w is a terminal that understands control sequences.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Terminal is a Sink for a person who watches: finished steps stay, and the last line shows what runs and for how long.
type Terminal struct {
	w     io.Writer
	since time.Time
	now   func() time.Time
	done  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	running []string
}

const (
	clearLine = "\r\x1b[K"
	// redraw is how often the elapsed time moves on.
	redraw = 100 * time.Millisecond
	// width keeps the running line from wrapping on the narrowest terminal in use; a wrapped line cannot be cleared.
	width = 78
)

// NewTerminal returns a Terminal that writes to w until it is closed.
func NewTerminal(w io.Writer, now func() time.Time) *Terminal {
	t := &Terminal{w: w, since: now(), now: now, done: make(chan struct{}), ended: make(chan struct{})}
	go t.tick()
	return t
}

// Show implements Sink.
func (t *Terminal) Show(event Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch event.What {
	case Begin:
		t.running = append(t.running, event.Step)
	case End:
		t.running = slices.DeleteFunc(t.running, func(step string) bool { return step == event.Step })
	}
	if event.What != Begin {
		_, _ = io.WriteString(t.w, clearLine+line(event))
	}
	t.draw()
}

// Close clears the running line. The Terminal shows nothing more by itself.
func (t *Terminal) Close() {
	close(t.done)
	<-t.ended
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.running) > 0 {
		_, _ = io.WriteString(t.w, clearLine)
		t.running = nil
	}
}

func (t *Terminal) tick() {
	defer close(t.ended)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-t.done:
			return
		case <-ticker.C:
			t.mu.Lock()
			t.draw()
			t.mu.Unlock()
		}
	}
}

func (t *Terminal) draw() {
	if len(t.running) == 0 {
		return
	}
	text := fmt.Sprintf("%6.1fs  … %s", t.now().Sub(t.since).Seconds(), strings.Join(t.running, ", "))
	if runes := []rune(text); len(runes) > width {
		text = string(runes[:width-1]) + "…"
	}
	_, _ = io.WriteString(t.w, clearLine+text)
}
