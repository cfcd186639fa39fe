package progress

import (
	"fmt"
	"io"
	"time"
)

// Lines is a Sink that writes one plain line an event: for files, pipes and continuous integration.
type Lines struct{ w io.Writer }

// NewLines returns Lines that writes to w.
func NewLines(w io.Writer) Lines { return Lines{w: w} }

// Show implements Sink.
func (l Lines) Show(event Event) { _, _ = io.WriteString(l.w, line(event)) }

func line(event Event) string {
	at := fmt.Sprintf("%6.1fs", event.At.Seconds())
	switch event.What {
	case Begin:
		return fmt.Sprintf("%s  … %s: %s\n", at, event.Step, event.Text)
	case End:
		return fmt.Sprintf("%s  ✓ %s: %s (%s)\n", at, event.Step, event.Text, seconds(event.Took))
	default:
		return fmt.Sprintf("%s  - %s\n", at, event.Text)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
