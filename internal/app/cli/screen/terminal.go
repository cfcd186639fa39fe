package screen

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Terminal is the input, output and clock of every command.
type Terminal struct {
	In     io.Reader
	Out    io.Writer
	ErrOut io.Writer // guarded: shows no token
	// AtTerminal is true if a person types what is read, or reads what is written to errOut, at a terminal.
	AtTerminal bool
	Now        func() time.Time
	after      func(time.Duration, func()) (stop func() bool)
}

// New returns the terminal of these streams. A clock that is nil is time.Now; after calls a function once a time has passed, unless
// stopped, and is time.AfterFunc if nil.
func New(streams genericiooptions.IOStreams, clock func() time.Time, after func(time.Duration, func()) (stop func() bool)) *Terminal {
	terminal := &Terminal{
		In: streams.In, Out: streams.Out, ErrOut: &guard{to: streams.ErrOut},
		Now: clock, after: after, AtTerminal: IsTerminal(streams.In) || IsTerminal(streams.ErrOut),
	}
	if terminal.Now == nil {
		terminal.Now = time.Now
	}
	if terminal.after == nil {
		terminal.after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	return terminal
}

// Notes writes notes beside the output.
func (t *Terminal) Notes(notes []string) {
	for _, note := range notes {
		fmt.Fprintln(t.ErrOut, "note: "+note)
	}
}

// IsTerminal reports whether a stream, which may not be a file, is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Instead has a command print an object in place of its text, by the function that it returns; for the output text, that function does nothing.
func (t *Terminal) Instead(output string) func(object any) error {
	if output == "text" {
		return func(any) error { return nil }
	}
	out := t.Out
	t.Out = io.Discard
	return func(object any) error { return Object(out, output, object) }
}
